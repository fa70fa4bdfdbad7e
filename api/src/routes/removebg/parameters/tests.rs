use super::*;

fn try_options(fields: &[(&str, &str)]) -> Result<CutoutOptions, Refusal> {
    let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let mut form = Form::default();
    form.files.push(Bytes::from_static(b"an image"));
    form.fields.extend(fields);
    parse(form).map(|(_, options, _)| options)
}

fn options(fields: &[(&str, &str)]) -> CutoutOptions {
    try_options(fields).expect("valid parameters")
}

#[test]
fn omitted_parameters_have_the_defaults_of_remove_bg() {
    let plain = options(&[]);
    assert_eq!((plain.max_pixels, plain.format), (Some(250_000), Format::Auto));
    assert_eq!((plain.crop, plain.scale, plain.position), (None, None, Position::Original));
    assert_eq!((plain.background, plain.channels), (None, Channels::Rgba));
}

#[test]
fn sizes_limit_the_number_of_pixels() {
    for (size, limit) in [
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
        assert_eq!(options(&[("size", size)]).max_pixels, limit, "{size}");
    }
}

#[test]
fn a_margin_has_one_two_or_four_lengths() {
    let margins = |text| options(&[("crop", "true"), ("crop_margin", text)]).crop.expect("cropped");
    let (a, b) = (Length::Pixels(30), Length::Share(0.1));
    assert_eq!(margins("30px"), Margins { top: a, right: a, bottom: a, left: a });
    assert_eq!(margins("30px 10%"), Margins { top: a, right: b, bottom: a, left: b });
    let four = Margins { top: a, right: b, bottom: Length::Pixels(0), left: Length::Pixels(500) };
    assert_eq!(margins("30px 10% 0 500px"), four);
    assert_eq!(options(&[("crop", "false"), ("crop_margin", "30px")]).crop, None);
    assert_eq!(options(&[("crop", "True")]).crop, Some(NO_MARGIN));
}

#[test]
fn a_scaled_subject_is_centered_by_default() {
    let position = |fields: &[(&str, &str)]| options(fields).position;
    let at = |x, y| Position::At { x, y };
    assert_eq!(position(&[("scale", "80%")]), at(0.5, 0.5));
    assert_eq!(position(&[("scale", "80%"), ("position", "original")]), Position::Original);
    assert_eq!(position(&[("scale", "original")]), Position::Original);
    assert_eq!(position(&[("position", "center")]), at(0.5, 0.5));
    assert_eq!(position(&[("position", "25%")]), at(0.25, 0.25));
    assert_eq!(position(&[("position", "0% 100%")]), at(0.0, 1.0));
    assert_eq!(options(&[("scale", "12.5%")]).scale, Some(0.125));
}

#[test]
fn parameters_without_effect_are_accepted() {
    for (name, value) in [
        ("type", "car"),
        ("type", "car_interior"),
        ("type_level", "2"),
        ("add_shadow", "false"),
        ("shadow_type", "none"),
        ("semitransparency", "true"),
        ("roi", "0% 0% 100% 100%"),
        // The default of a client in Python.
        ("roi", "0 0 100% 100%"),
    ] {
        assert_eq!(options(&[(name, value)]), options(&[]), "{name}");
    }
}

#[test]
fn invalid_and_unsupported_parameters_are_rejected_by_name() {
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
        let refused = format!("{:?}", try_options(&[(name, value)]).expect_err(name));
        assert!(refused.contains("400") && refused.contains(&format!("\"{name} ")), "{refused}");
    }
    for fields in [
        [("channels", "alpha"), ("bg_color", "red")],
        [("channels", "alpha"), ("format", "zip")],
        [("size", "full"), ("size", "full")],
    ] {
        let refused = format!("{:?}", try_options(&fields).expect_err("refused"));
        assert!(refused.contains(&format!("\"{} ", fields[1].0)), "{refused}");
    }
}

#[test]
fn exactly_one_image_is_required() {
    let with = |files: &[&'static [u8]]| {
        let mut form = Form::default();
        form.files.extend(files.iter().copied().map(Bytes::from_static));
        format!("{:?}", parse(form).map(|_| ()))
    };
    assert!(with(&[b"a", b"b"]).contains("multiple_sources"));
    assert_eq!(with(&[b"a"]), "Ok(())");
    assert!(with(&[]).contains("missing_source"));
}
