use super::*;
use crate::Picture;

/// A picture in which `inside` chooses between two colors, with a little noise.
fn picture(width: u32, height: u32, inside: impl Fn(u32, u32) -> bool) -> Picture {
    let rgb = (0..height)
        .flat_map(|y| (0..width).map(move |x| (x, y)))
        .flat_map(|(x, y)| {
            let noise = (x * 7 + y * 13) % 5;
            let color = if inside(x, y) { [200, 80, 60] } else { [60, 110, 90] };
            color.map(|sample: u32| (sample + noise) as u8)
        })
        .collect();
    Picture { width, height, rgb, alpha: None, gray: false, icc: None }
}

/// A map such as a small net's: 8 pixels wide steps, `shift` pixels off, soft at the edge.
fn coarse_map(scene: &Scene, inside: impl Fn(u32, u32) -> bool) -> Map {
    let (width, height) = scene.reduced_size();
    let values = (0..height)
        .flat_map(|y| (0..width).map(move |x| (x / 8 * 8 + 4, y / 8 * 8 + 4)))
        .map(|(x, y)| {
            let near = [(0, 0), (8, 0), (0, 8), (16, 8), (8, 16)];
            let hits = near
                .iter()
                .filter(|(dx, dy)| inside((x + dx).saturating_sub(8), (y + dy).saturating_sub(8)));
            (hits.count() * 51) as u8
        })
        .collect();
    Map { region: Region::whole((width, height)), values }
}

fn select(scene: &Scene, map: &Map, marks: &Marks) -> Option<Selection> {
    let mut prior = Prior::new(scene);
    for click in &marks.positive {
        prior.add(&Subject::at(map, *click, scene.reduced_size()).expect("a subject at the click"));
    }
    if marks.positive.is_empty() {
        prior.add(&Subject::all(map, scene.reduced_size()).expect("a subject"));
    }
    scene.select(prior, marks).expect("the sizes match")
}

/// The share of the union that both cover.
fn overlap(selection: &Selection, width: u32, inside: impl Fn(u32, u32) -> bool) -> f64 {
    let (mut both, mut either) = (0, 0);
    for (at, on) in selection.pixels().iter().enumerate() {
        let is_inside = inside(at as u32 % width, at as u32 / width);
        both += u32::from(*on && is_inside);
        either += u32::from(*on || is_inside);
    }
    f64::from(both) / f64::from(either)
}

fn disc(x: u32, y: u32, middle: (u32, u32), radius: u32) -> bool {
    x.abs_diff(middle.0).pow(2) + y.abs_diff(middle.1).pow(2) <= radius * radius
}

fn click(x: u32, y: u32) -> Marks {
    Marks { positive: vec![Point { x, y }], ..Marks::default() }
}

#[test]
fn a_coarse_map_is_refined_to_the_edge_of_the_color() {
    let inside = |x, y| disc(x, y, (120, 90), 50);
    let scene = Scene::new(picture(240, 180, inside));
    let map = coarse_map(&scene, inside);
    let coarse = map
        .values
        .iter()
        .enumerate()
        .filter(|(at, value)| (**value >= 128) != inside(*at as u32 % 240, *at as u32 / 240));
    assert!(coarse.count() > 300, "the map is coarse");
    let selection = select(&scene, &map, &click(120, 90)).expect("something");
    let overlap = overlap(&selection, 240, inside);
    assert!(overlap > 0.995, "{overlap}");
}

#[test]
fn a_large_picture_is_refined_at_full_size() {
    let inside = |x, y| disc(x, y, (1601, 1203), 803);
    let scene = Scene::new(picture(3200, 2400, inside));
    assert_eq!(scene.reduced_size(), (1024, 768));
    let map = coarse_map(&scene, |x, y| inside(x * 3200 / 1024, y * 2400 / 768));
    let selection = select(&scene, &map, &click(512, 380)).expect("something");
    let overlap = overlap(&selection, 3200, inside);
    assert!(overlap > 0.999, "{overlap}");
}

#[test]
fn only_the_clicked_subject_is_selected_and_a_second_click_adds_another() {
    let first = |x, y| disc(x, y, (60, 60), 30);
    let second = |x, y| disc(x, y, (180, 120), 30);
    let both = move |x, y| first(x, y) || second(x, y);
    let scene = Scene::new(picture(240, 180, both));
    let map = coarse_map(&scene, both);
    let one = select(&scene, &map, &click(60, 60)).expect("something");
    assert!(overlap(&one, 240, first) > 0.98);
    let mut marks = click(60, 60);
    marks.positive.push(Point { x: 180, y: 120 });
    let two = select(&scene, &map, &marks).expect("something");
    assert!(overlap(&two, 240, both) > 0.98);
    assert_eq!(select(&scene, &map, &Marks::default()), Some(two), "all subjects");
}

#[test]
fn a_negative_point_takes_its_part_away() {
    let first = |x, y| disc(x, y, (60, 60), 30);
    let second = |x, y| disc(x, y, (180, 120), 30);
    let both = move |x, y| first(x, y) || second(x, y);
    let scene = Scene::new(picture(240, 180, both));
    let map = coarse_map(&scene, both);
    let marks = Marks { negative: vec![Point { x: 180, y: 120 }], ..Marks::default() };
    let left = select(&scene, &map, &marks).expect("something");
    assert!(overlap(&left, 240, first) > 0.98);
}

#[test]
fn a_negative_point_inside_a_subject_stops_at_the_edge_of_its_color() {
    let body = |x, y| disc(x, y, (120, 90), 60);
    let hat = |x: u32, y: u32| body(x, y) && y < 60;
    let mut picture = picture(240, 180, body);
    for y in 0..180 {
        for x in 0..240 {
            if hat(x, y) {
                let at = ((y * 240 + x) * 3) as usize;
                picture.rgb[at..at + 3].copy_from_slice(&[40, 60, 200]);
            }
        }
    }
    let scene = Scene::new(picture);
    let map = coarse_map(&scene, body);
    let mut marks = click(120, 120);
    marks.negative.push(Point { x: 120, y: 50 });
    let selection = select(&scene, &map, &marks).expect("something");
    let at = |x: usize, y: usize| selection.pixels()[y * 240 + x];
    assert!(!at(120, 50) && !at(110, 55), "the clicked part is gone");
    assert!(at(120, 63) && at(90, 90), "beyond its edge nothing changes");
}

#[test]
fn nothing_outside_a_box_is_selected() {
    let inside = |x, y| disc(x, y, (120, 90), 50);
    let scene = Scene::new(picture(240, 180, inside));
    let map = coarse_map(&scene, inside);
    let area = Region { left: 0, top: 0, width: 120, height: 180 };
    let marks = Marks { area: Some(area), ..Marks::default() };
    let selection = select(&scene, &map, &marks).expect("something");
    assert!(overlap(&selection, 240, |x, y| inside(x, y) && x < 120) > 0.98);
    let elsewhere = Region { left: 0, top: 0, width: 20, height: 20 };
    let marks = Marks { area: Some(elsewhere), ..Marks::default() };
    assert_eq!(select(&scene, &map, &marks), None);
}

#[test]
fn a_click_where_no_subject_is_selects_by_color() {
    let inside = |x: u32, y: u32| x > 100 && y > 40;
    let scene = Scene::new(picture(240, 180, inside));
    let map = coarse_map(&scene, |_, _| false);
    let click = Point { x: 200, y: 100 };
    assert!(Subject::at(&map, click, scene.reduced_size()).is_none());
    let mut prior = Prior::new(&scene);
    prior.add_color_at(&scene, click);
    let marks = Marks { positive: vec![click], ..Marks::default() };
    let selection = scene.select(prior, &marks).expect("the sizes match").expect("something");
    assert!(overlap(&selection, 240, inside) > 0.98);
}

#[test]
fn a_subject_that_the_region_cuts_off_is_less_certain() {
    // The left half of the region.
    let values: Vec<u8> = (0..1600).map(|at| if at % 40 < 20 { 255 } else { 0 }).collect();
    let map = |left| {
        let region = Region { left, top: 20, width: 40, height: 40 };
        Map { region, values: values.clone() }
    };
    let size = (200, 200);
    let cut = Subject::at(&map(50), Point { x: 60, y: 40 }, size).expect("a subject");
    let at_the_border = Subject::at(&map(0), Point { x: 10, y: 40 }, size).expect("a subject");
    assert!(cut.confidence < at_the_border.confidence);
    assert_eq!(cut.bounds, Region { left: 50, top: 20, width: 20, height: 40 });
}

#[test]
fn the_smallest_pictures_are_selected() {
    for (width, height) in [(1, 1), (1, 7), (3000, 1), (2, 2)] {
        let scene = Scene::new(picture(width, height, |_, _| true));
        let size = scene.reduced_size();
        let map =
            Map { region: Region::whole(size), values: vec![255; (size.0 * size.1) as usize] };
        let selection = select(&scene, &map, &click(0, 0)).expect("something");
        assert!(selection.pixels().iter().all(|on| *on), "{width} × {height}");
    }
}

#[test]
fn the_file_has_one_bit_per_pixel_and_the_size_of_the_picture() {
    let inside = |x, y| disc(x, y, (50, 40), 20);
    let scene = Scene::new(picture(101, 83, inside));
    let selection = select(&scene, &coarse_map(&scene, inside), &click(50, 40)).expect("something");
    let png = selection.to_png().expect("encoded");
    let mask = image::load_from_memory(&png).expect("a PNG").into_luma8();
    assert_eq!(mask.dimensions(), (101, 83));
    let on: Vec<_> = mask.into_raw().into_iter().map(|value| value == 255).collect();
    assert_eq!(on, selection.pixels());
}

#[test]
fn what_lies_under_transparent_pixels_does_not_matter() {
    let cut = |hidden: [u8; 3]| {
        let rgb = [[200, 80, 60], hidden, [60, 110, 90]].concat();
        let alpha = Some(vec![255, 0, 128]);
        let scene = Scene::new(Picture { width: 3, height: 1, rgb, alpha, gray: false, icc: None });
        scene.cut(Region::whole((3, 1)), 1).rgb
    };
    assert_eq!(cut([0; 3]), cut([250, 10, 30]));
    assert_eq!(cut([0; 3])[..3], [200, 80, 60]);
}
