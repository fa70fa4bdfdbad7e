//! Foreground estimation on mattes with known foreground colors.

use retouch_pixels::Picture;
use retouch_pixels::foreground::cut_out;

const SIDE: usize = 400;

/// Returns true foreground colors, alpha, and the picture that composites them over a busy background.
fn matte(softness: f32) -> (Vec<[f32; 3]>, Vec<u8>, Picture) {
    let (mut foreground, mut alpha, mut rgb) = (Vec::new(), Vec::new(), Vec::new());
    for y in 0..SIDE {
        for x in 0..SIDE {
            let (fx, fy) = (x as f32, y as f32);
            let f = [200.0 + 30.0 * (fx / 25.0).sin(), 70.0 + fy / 8.0, 60.0];
            let b = [20.0, 120.0 + 60.0 * (fy / 40.0).cos(), 210.0 - fx / 10.0];
            let distance = (fx - 200.0).hypot(fy - 200.0);
            let a = ((120.0 - distance) / softness + 0.5).clamp(0.0, 1.0);
            let byte = (a * 255.0).round() as u8;
            let a = f32::from(byte) / 255.0;
            rgb.extend((0..3).map(|c| (a * f[c] + (1.0 - a) * b[c]).round() as u8));
            foreground.push(f);
            alpha.push(byte);
        }
    }
    let side = SIDE as u32;
    (
        foreground,
        alpha,
        Picture { width: side, height: side, rgb, alpha: None, gray: false, icc: None },
    )
}

#[test]
fn estimated_edge_colors_are_much_closer_to_the_foreground() {
    for softness in [4.0, 16.0, 50.0] {
        let (foreground, alpha, picture) = matte(softness);
        let rgba = cut_out(&picture, &alpha);
        let (mut naive, mut ours) = (0.0, 0.0);
        for (index, a) in alpha.iter().enumerate().filter(|(_, a)| (1..255).contains(*a)) {
            for channel in 0..3 {
                let truth = foreground[index][channel];
                let weight = f32::from(*a) / 255.0;
                naive += weight * (f32::from(picture.rgb[index * 3 + channel]) - truth).abs();
                ours += weight * (f32::from(rgba[index * 4 + channel]) - truth).abs();
            }
        }
        println!("softness {softness}: {:.3} of the naive error", ours / naive);
        assert!(ours < 0.15 * naive, "softness {softness}: {:.3} of the naive error", ours / naive);
    }
}

#[test]
fn opaque_pixels_are_unchanged_and_transparent_ones_are_zero() {
    let (_, alpha, picture) = matte(16.0);
    let rgba = cut_out(&picture, &alpha);
    for ((pixel, rgb), a) in rgba.chunks_exact(4).zip(picture.rgb.chunks_exact(3)).zip(alpha) {
        match a {
            255 => assert_eq!(pixel[..3], *rgb),
            0 => assert_eq!(*pixel, [0; 4]),
            a => assert_eq!(pixel[3], a),
        }
    }
}
