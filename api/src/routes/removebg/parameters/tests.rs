use super::*;

fn shape_of(fields: &[(&str, &str)]) -> Result<Shape, Refusal> {
    let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let files = vec![Bytes::from_static(b"a picture")];
    read(Form { files, fields: fields.collect(), max_bytes: 100 }).map(|(_, shape)| shape)
}

fn shape(fields: &[(&str, &str)]) -> Shape {
    shape_of(fields).expect("understood")
}

#[test]
fn what_is_not_said_is_as_the_wire_format_has_it() {
    let plain = shape(&[]);
    assert_eq!((plain.max_pixels, plain.format), (Some(250_000), Format::Auto));
    assert_eq!((plain.crop, plain.scale, plain.position), (None, None, Position::Original));
    assert_eq!((plain.background, plain.channels), (None, Channels::Rgba));
}

#[test]
fn sizes_are_numbers_of_pixels() {
    for (size, most) in [
        ("preview", Some(250_000)),
        ("small", Some(250_000)),
        ("regular", Some(250_000)),
        ("medium", Some(1_500_000)),
        ("hd", Some(4_000_000)),
        ("full", None),
        ("4k", None),
        ("auto", None),
        ("50MP", None),
    ] {
        assert_eq!(shape(&[("size", size)]).max_pixels, most, "{size}");
    }
}

#[test]
fn a_margin_has_one_two_or_four_lengths() {
    let margins = |text| shape(&[("crop", "true"), ("crop_margin", text)]).crop.expect("cropped");
    let (a, b) = (Length::Pixels(30), Length::Share(0.1));
    assert_eq!(margins("30px"), Margins { top: a, right: a, bottom: a, left: a });
    assert_eq!(margins("30px 10%"), Margins { top: a, right: b, bottom: a, left: b });
    let four = Margins { top: a, right: b, bottom: Length::Pixels(0), left: Length::Pixels(500) };
    assert_eq!(margins("30px 10% 0 500px"), four);
    assert_eq!(shape(&[("crop", "false"), ("crop_margin", "30px")]).crop, None);
    assert_eq!(shape(&[("crop", "True")]).crop, Some(NO_MARGIN));
}

#[test]
fn what_is_scaled_stands_in_the_middle_unless_it_is_said_where() {
    let place = |fields: &[(&str, &str)]| shape(fields).position;
    let at = |x, y| Position::At { x, y };
    assert_eq!(place(&[("scale", "80%")]), at(0.5, 0.5));
    assert_eq!(place(&[("scale", "80%"), ("position", "original")]), Position::Original);
    assert_eq!(place(&[("scale", "original")]), Position::Original);
    assert_eq!(place(&[("position", "center")]), at(0.5, 0.5));
    assert_eq!(place(&[("position", "25%")]), at(0.25, 0.25));
    assert_eq!(place(&[("position", "0% 100%")]), at(0.0, 1.0));
    assert_eq!(shape(&[("scale", "12.5%")]).scale, Some(0.125));
}

#[test]
fn what_would_be_ignored_and_means_nothing_is_accepted() {
    for (name, value) in [
        ("type", "car"),
        ("type_level", "2"),
        ("add_shadow", "false"),
        ("shadow_type", "none"),
        ("semitransparency", "true"),
        ("roi", "0% 0% 100% 100%"),
    ] {
        assert_eq!(shape(&[(name, value)]), shape(&[]), "{name}");
    }
}

#[test]
fn what_is_wrong_or_not_supported_is_refused_by_its_name() {
    for (name, value) in [
        ("size", "huge"),
        ("type", "ship"),
        ("type_level", "9"),
        ("format", "gif"),
        ("channels", "rgb"),
        ("bg_color", "12345"),
        ("crop", "maybe"),
        ("crop_margin", "10"),
        ("crop_margin", "1px 2px 3px"),
        ("crop_margin", "501px"),
        ("crop_margin", "51%"),
        ("crop_margin", "-1px"),
        ("scale", "5%"),
        ("scale", "101%"),
        ("scale", "NaN%"),
        ("scale", "0.5"),
        ("position", "left"),
        ("position", "1% 2% 3%"),
        ("position", "101%"),
        ("roi", "0px 0px 10px 10px"),
        ("add_shadow", "true"),
        ("shadow_type", "drop"),
        ("shadow_opacity", "50"),
        ("semitransparency", "false"),
        ("bg_image_url", "https://x.test/a.png"),
        ("bg_image_file", "a file"),
        ("image_url", "https://x.test/a.png"),
        ("no_such_parameter", "1"),
    ] {
        let refused = format!("{:?}", shape_of(&[(name, value)]).expect_err(name));
        assert!(refused.contains("400") && refused.contains(&format!("\"{name} ")), "{refused}");
    }
    for fields in [
        [("channels", "alpha"), ("bg_color", "red")],
        [("channels", "alpha"), ("format", "zip")],
        [("size", "full"), ("size", "full")],
    ] {
        let refused = format!("{:?}", shape_of(&fields).expect_err("refused"));
        assert!(refused.contains(&format!("\"{} ", fields[1].0)), "{refused}");
    }
}

#[test]
fn base64_comes_with_or_without_padding_line_breaks_and_a_head() {
    let file = |text: &str| {
        let fields = vec![("image_file_b64".to_owned(), text.to_owned())];
        read(Form { files: Vec::new(), fields, max_bytes: 5 }).map(|(file, _)| file)
    };
    for text in ["aGVsbG8=", "aGVsbG8", "aGVs\r\nbG8=", "data:image/png;base64,aGVsbG8="] {
        assert_eq!(file(text).expect(text).as_ref(), b"hello");
    }
    let large = format!("{:?}", file("aGVsbG8h").expect_err("six bytes"));
    assert!(large.contains("413"), "{large}");
    assert!(format!("{:?}", file("***").expect_err("no base64")).contains("image_file_b64 "));
}

#[test]
fn there_is_exactly_one_picture() {
    let with = |files: Vec<Bytes>| {
        let fields = vec![("image_file_b64".to_owned(), "aGVsbG8=".to_owned())];
        format!("{:?}", read(Form { files, fields, max_bytes: 100 }).map(|_| ()))
    };
    assert!(with(vec![Bytes::from_static(b"a")]).contains("multiple_sources"));
    assert_eq!(with(Vec::new()), "Ok(())");
    let none = read(Form { files: Vec::new(), fields: Vec::new(), max_bytes: 100 });
    assert!(format!("{:?}", none.map(|_| ())).contains("missing_source"));
}
