"""Builds a net with one attention, as exporters write it, of the size [batch, sequence, WIDTH]."""

from .sampling_encoder import convert_module

WIDTH, HEADS = 8, 2
HEAD_SIZE = WIDTH // HEADS
END = (1 << 63) - 1


class AttentionNet:
    """Arguments change one thing each, by which it is another net."""

    def __init__(
        self,
        computes_sizes=True,
        scale=None,
        folds=False,
        divides=False,
        mask=False,
        perm=(0, 2, 1, 3),
        axis=None,
        shows_scores=False,
        rank=3,
        columns=(0, 2, 3, 1),
        split=None,
        unfolded=HEADS,
        batch_of_context="batch",
    ):
        self.file = convert_module("onnx_file")
        self.graph = self.file.Graph("attention")
        self.computes_sizes = computes_sizes
        self.folds = folds
        self.divides = divides
        self.perm = perm
        self.split = split
        self.graph.input("x", ["batch", *["height", "width"][: rank - 2], WIDTH])
        self.graph.input("context", [batch_of_context, 77, WIDTH])
        for name in ("first", "minus_one"):
            self.graph.constant(name, [1], [{"first": 0, "minus_one": -1}[name]], self.file.INT64)
        query, key, value = self.projected("q", "x"), self.projected("k", "context"), self.projected("v", "context")
        q, k, v = self.heads(query), self.heads(key, None if folds else columns), self.heads(value)
        if folds:
            k = self.graph.node("Transpose", [k], "k_columns", perm=[0, 2, 1])
        scores = self.scores(q, k, scale)
        if mask:
            scores = self.graph.node("Add", [scores, self.graph.constant("mask", [1], [-1.0])], "masked")
        weights = self.graph.node("Softmax", [scores], "weights", axis=axis or (2 if folds else 3))
        mixed = self.graph.node("MatMul", [weights, v], "mixed")
        if folds:
            mixed = self.graph.node("Reshape", [mixed, self.folded_sizes("unfolded_sizes", "q", [unfolded])], "unfolded")
        merged = self.graph.node("Transpose", [mixed], "merged", perm=[0, 2, 1, 3])
        joined = self.graph.node("Reshape", [merged, self.sizes("joined_sizes", "context", [-1, WIDTH])], "joined")
        self.graph.node("Identity", [joined], "y")
        self.graph.output("y", ["batch", "sequence", WIDTH])
        if shows_scores:
            self.graph.output("weights", ["batch", HEADS, "sequence", 77])

    def to_bytes(self):
        return self.graph.to_bytes()

    def projected(self, name, source):
        weights = self.graph.constant(f"{name}_weights", [WIDTH, WIDTH], [0.1 * (at % 7) for at in range(WIDTH * WIDTH)])
        return self.graph.node("MatMul", [source, weights], name)

    def heads(self, name, perm=None):
        split = self.graph.node("Reshape", [name, self.sizes(f"{name}_sizes", "context", self.split or [-1, HEADS, HEAD_SIZE])], f"{name}_split")
        made = self.graph.node("Transpose", [split], f"{name}_heads", perm=list(perm or self.perm))
        if self.folds:
            made = self.graph.node("Reshape", [made, self.folded_sizes(f"{name}_folded_sizes", f"{name}_heads", [], 2)], f"{name}_folded")
        return made

    def folded_sizes(self, name, source, heads, axis=1):
        """Returns [-1, heads, sequence, head size]; the sequence is an axis of another tensor."""
        index = self.graph.constant(f"{name}_index", [1], [axis], self.file.INT64)
        sequence = self.graph.node("Gather", [self.graph.node("Shape", [source], f"{name}_shape"), index], f"{name}_sequence", axis=0)
        first = self.graph.constant(f"{name}_first", [1 + len(heads)], [-1, *heads], self.file.INT64)
        size = self.graph.constant(f"{name}_size", [1], [HEAD_SIZE], self.file.INT64)
        return self.graph.node("Concat", [first, sequence, size], name, axis=0)

    def sizes(self, name, source, rest):
        """Returns a shape: a constant that copies the batch, or one computed from the batch of another tensor."""
        if not self.computes_sizes:
            return self.graph.constant(name, [1 + len(rest)], [0, *rest], self.file.INT64)
        index = self.graph.constant(f"{name}_index", [], [0], self.file.INT64)
        batch = self.graph.node("Gather", [self.graph.node("Shape", [source], f"{name}_shape"), index], f"{name}_batch", axis=0)
        parts = [self.graph.node("Unsqueeze", [batch, "first"], f"{name}_part")]
        for at, size in enumerate(rest):
            if self.divides and size == HEAD_SIZE:
                parts.append(self.graph.node("Unsqueeze", [self.quotient(name), "first"], f"{name}_size"))
            else:
                parts.append(self.graph.constant(f"{name}_{at}", [1], [size], self.file.INT64))
        return self.graph.node("Concat", parts, name, axis=0)

    def quotient(self, name):
        """Returns the width of the key, divided by the heads as exporters do: rounded down, which matters for negative numbers only."""
        node = lambda operator, *inputs, **more: self.graph.node(operator, inputs, f"{name}_quotient_{len(self.graph.nodes)}", **more)
        last, zero, heads = (
            self.graph.constant(f"{name}_{kind}", [], [value], self.file.INT64) for kind, value in (("last", 2), ("zero", 0), ("heads", HEADS))
        )
        width = node("Gather", node("Shape", "k"), last, axis=0)
        quotient = node("Div", width, heads)
        rest = node("Sub", width, node("Mul", quotient, heads))
        is_negative = node("Xor", node("Less", width, zero), node("Less", heads, zero))
        fixed = node("Cast", node("And", is_negative, node("Not", node("Equal", rest, zero))), to=self.file.INT64)
        return node("Sub", quotient, fixed)

    def scores(self, q, k, scale):
        if scale is not None:
            number = self.graph.constant("scale", [], [scale])
            return self.graph.node("Mul", [self.graph.node("MatMul", [q, k], "products"), number], "scores")
        # sqrt(1 / sqrt(head size)) for each of both.
        end = self.graph.constant("end", [1], [END], self.file.INT64)
        size = self.graph.node("Slice", [self.graph.node("Shape", [q], "q_shape"), "minus_one", end], "size")
        root = self.graph.node("Sqrt", [self.graph.node("Cast", [size], "float_size", to=self.file.FLOAT)], "root")
        share = self.graph.node("Div", [self.graph.constant("one", [1], [1.0]), root], "share")
        parts = [self.graph.node("Mul", [part, self.graph.node("Sqrt", [share], f"{part}_factor")], f"{part}_scaled") for part in (q, k)]
        return self.graph.node("MatMul", parts, "scores")
