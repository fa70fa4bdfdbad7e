//! Facts about ONNX's operators: which of them tolerate 16 bits, and what they return.

/// How precisely an operator computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// In 16 bits: most of the work of a net. A GPU sums the products in 32 bits.
    Half,
    /// Like its inputs, so that values that are in 32 bits stay in 32 bits, and none is converted needlessly.
    Follows,
    /// In 32 bits: its sums, powers, or coordinates overflow 16 bits or lose too much.
    Full,
}

/// The type of an operator's first output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Elements of the same type as the elements of the input at an index.
    Like(usize),
    /// Integers or truth values.
    NoFloats,
}

/// The types of an operator's other outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// Not known; such a node is refused.
    Unknown,
    /// The same as the first.
    Alike,
    /// Integers or truth values.
    NoFloats,
}

#[derive(Clone, Copy, Debug)]
pub struct Operator {
    pub arithmetic: Arithmetic,
    pub output: Output,
    pub others: Others,
    /// The inputs that ONNX defines as 32-bit floats, whatever the others are.
    pub full_inputs: &'static [usize],
}

/// Returns the facts about one of ONNX's own operators; `None` for an operator that must not be changed.
pub fn find(kind: &str) -> Option<Operator> {
    let like_first = |arithmetic| Operator {
        arithmetic,
        output: Output::Like(0),
        others: Others::Unknown,
        full_inputs: &[],
    };
    let follows = like_first(Arithmetic::Follows);
    Some(match kind {
        "Conv" | "ConvTranspose" | "Einsum" | "Gemm" | "MatMul" => like_first(Arithmetic::Half),
        "Abs" | "Add" | "AveragePool" | "BatchNormalization" | "Ceil" | "Clip" | "Concat"
        | "DepthToSpace" | "Div" | "Elu" | "Erf" | "Expand" | "Flatten" | "Floor" | "Gather"
        | "GatherElements" | "GatherND" | "Gelu" | "GlobalMaxPool" | "HardSigmoid"
        | "HardSwish" | "Identity" | "LeakyRelu" | "Max" | "Min" | "Mul" | "Neg" | "PRelu"
        | "Pad" | "ReduceMax" | "ReduceMin" | "Relu" | "Reshape" | "Round" | "ScatterElements"
        | "ScatterND" | "Sigmoid" | "Sign" | "Slice" | "SpaceToDepth" | "Squeeze" | "Sub"
        | "Tanh" | "Tile" | "Transpose" | "Unsqueeze" => follows,
        "Dropout" | "MaxPool" => Operator { others: Others::NoFloats, ..follows },
        "Split" => Operator { others: Others::Alike, ..follows },
        "Resize" => Operator { full_inputs: &[1, 2], ..follows },
        "Upsample" => Operator { full_inputs: &[1], ..follows },
        "Where" => Operator { output: Output::Like(1), ..follows },
        "And" | "ArgMax" | "ArgMin" | "Equal" | "Greater" | "GreaterOrEqual" | "Less"
        | "LessOrEqual" | "NonZero" | "Not" | "Or" | "Shape" | "Size" | "Xor" => {
            Operator { output: Output::NoFloats, ..follows }
        }
        "Cos"
        | "CumSum"
        | "DeformConv"
        | "Exp"
        | "GlobalAveragePool"
        | "GridSample"
        | "GroupNormalization"
        | "InstanceNormalization"
        | "LayerNormalization"
        | "Log"
        | "LogSoftmax"
        | "LpNormalization"
        | "Mean"
        | "MeanVarianceNormalization"
        | "Mod"
        | "Pow"
        | "Range"
        | "Reciprocal"
        | "ReduceL1"
        | "ReduceL2"
        | "ReduceLogSumExp"
        | "ReduceMean"
        | "ReduceProd"
        | "ReduceSum"
        | "ReduceSumSquare"
        | "Sin"
        | "Softmax"
        | "Softplus"
        | "Sqrt"
        | "Sum" => like_first(Arithmetic::Full),
        "TopK" => Operator { others: Others::NoFloats, ..like_first(Arithmetic::Full) },
        _ => return None,
    })
}
