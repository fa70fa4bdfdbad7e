//! Prompts that paint something, often beside other requests, in any language.

use retouch_catalog::FixMode::{Add, Edit, Enhance, Remove, Restore};

use super::assert_modes;

#[test]
fn colorizing_is_an_edit_even_after_a_restoration() {
    assert_modes(&[
        ("colorize", Edit),
        ("colorize this old photo", Edit),
        ("colourise this old picture", Edit),
        ("Colorize the old photo", Edit),
        ("color this old photo", Edit),
        ("restore and colorize this photo", Edit),
        ("restore this photo and colorize it", Edit),
        ("restore the old photo and color it", Edit),
        ("remove the scratches and colorize it", Edit),
        ("enhance the photo, colorize it", Edit),
        ("Altes Foto kolorieren", Edit),
        ("Foto restaurieren und kolorieren", Edit),
        ("Restauriere und koloriere das Foto", Edit),
        ("Verbessere die Lippen und färbe sie rot", Edit),
        ("Colorea la foto antigua", Edit),
        ("Restaura y colorea la foto", Edit),
        ("Colorise la vieille photo", Edit),
        ("Restaure et colorise la photo", Edit),
        ("Restaure e colora a foto", Edit),
        ("Restaure a foto e pinte o céu de azul", Edit),
        ("修复老照片并上色", Edit),
        ("给老照片上色", Edit),
        ("修复照片，然后上色", Edit),
        ("古い写真を修復してカラー化", Edit),
        ("古い写真を修復してカラーにしてください", Edit),
        ("restore the photo and add color", Restore),
        ("restore the colors of the photo", Restore),
        ("restore the colored photo", Restore),
        ("remove the coloring book", Remove),
        ("remove the dye and color", Remove),
        ("去掉上色的字", Remove),
        ("repair the color photo", Restore),
        ("a colorized photo of a ship", Edit),
    ]);
}

#[test]
fn an_enhancement_with_a_new_thing_is_an_edit() {
    assert_modes(&[
        ("enhance the sky with northern lights", Edit),
        ("enhance her lips with red lipstick", Edit),
        ("improve the sky with clouds", Edit),
        ("improve the room with a fireplace", Edit),
        ("enhance the photo, then enhance the sky with stars", Edit),
        ("repair the car into a truck", Edit),
        ("restore the house into a castle", Edit),
        ("repair the wall with bricks", Edit),
        ("upgrade the car to a Ferrari", Edit),
        ("please enhance the sky with some clouds", Edit),
        ("remove the scratches and enhance the sky with stars", Edit),
        ("enhance the photo with AI", Enhance),
        ("enhance the photo with an AI upscaler", Enhance),
        ("improve the picture with more detail", Enhance),
        ("improve the photo with better lighting", Enhance),
        ("enhance the photo with vivid colors", Enhance),
        ("enhance the photo with high quality", Enhance),
        ("enhance the man with the hat", Enhance),
        ("enhance the woman with red hair", Enhance),
        ("enhance the face with natural skin", Enhance),
        ("enhance the image with a natural look", Enhance),
        ("sharpen the photo with care", Enhance),
        ("sharpen the image into 4k", Enhance),
        ("enhance the photo into a high quality image", Enhance),
        ("upgrade the photo to a higher resolution", Enhance),
        ("restore the photo with scratches", Restore),
        ("repair the car with the broken window", Restore),
        ("fix the vase with a crack", Restore),
        ("restore the photo into its original state", Restore),
        ("restore the photo with AI", Restore),
        ("enhance with AI", Enhance),
        ("restore the face with glasses", Restore),
        ("sharpen the face with glasses", Enhance),
        ("restore the photo with two people", Restore),
        ("enhance the photo with two people", Enhance),
        ("fix the picture with a man in it", Restore),
        ("fix the car with new wheels", Edit),
        ("enhance the room with a new sofa", Edit),
        ("enhance the photo with realistic skin", Enhance),
        ("enhance the photo without changing the face", Enhance),
    ]);
}

#[test]
fn another_color_or_thing_is_painted_over_what_is_mended() {
    assert_modes(&[
        ("enhance the face and make her eyes blue", Edit),
        ("enhance the photo and change the sky to a sunset", Edit),
        ("restore the photo and turn it into a painting", Edit),
        ("restore the photo and make it black and white", Edit),
        ("sharpen the face, make the hair blonde", Edit),
        ("Verbessere das Gesicht und mach die Augen blau", Edit),
        ("Gesicht verbessern und Augen blau machen", Edit),
        ("Mejora la cara y haz los ojos azules", Edit),
        ("Améliore le visage et rends les yeux bleus", Edit),
        ("Melhore o rosto e mude os olhos para azul", Edit),
        ("remove the scratches and make it less yellow", Restore),
        ("remove the scratches and make the colors vivid", Restore),
        ("enhance the photo and make it brighter", Enhance),
        ("enhance the photo and make the red car sharper", Enhance),
        ("enhance the photo and turn it into 4k", Enhance),
        ("enhance the face and make sure the eyes stay blue", Enhance),
        ("enhance the face and don't make it blue", Enhance),
        ("enhance the photo and turn it into a sharper picture", Enhance),
        ("Verbessere das Bild und mach es schärfer", Enhance),
        ("Verbessere das Bild und mach das rote Auto schärfer", Enhance),
        ("remove the man and make it look natural", Remove),
    ]);
}

#[test]
fn what_is_put_on_or_shown_replaces_what_is_removed() {
    assert_modes(&[
        ("delete the shirt and dress him in a suit", Edit),
        ("take off his jacket and have him wear a suit", Edit),
        ("remove the jacket and let the man wear a suit", Edit),
        ("remove wall to show a garden", Edit),
        ("please remove the wall to reveal a garden", Edit),
        ("remove the hat and paint hair", Edit),
        ("remove the shirt and dress", Remove),
        ("remove the hat and the dress", Remove),
        ("remove the wall to show the garden behind it", Remove),
        ("remove the sign showing a car", Remove),
        ("remove the man and have fun", Remove),
        ("remove the man, don't let him wear a hat", Remove),
        ("remove the tape and paint marks", Remove),
        ("enhance the text to reveal a hidden word", Enhance),
        ("Auto entfernen und Baum hinsetzen", Edit),
        ("Auto entfernen und einen Baum pflanzen", Edit),
        ("Mütze entfernen und ihm einen Hut aufsetzen", Edit),
        ("dem Mann einen Hut aufsetzen", Add),
        ("Auto entfernen, das auf der Wiese steht", Remove),
        ("Mann beim Anziehen entfernen", Remove),
    ]);
}

#[test]
fn a_person_without_a_thing_who_does_something_is_described() {
    assert_modes(&[
        ("without glasses smiling", Edit),
        ("without a hat laughing", Edit),
        ("without glasses", Remove),
        ("without the smiling man", Remove),
        ("without the building", Remove),
        ("without people in the ceiling", Remove),
        ("without the man smiling", Remove),
        ("a man without glasses smiling", Edit),
    ]);
}

#[test]
fn what_a_thing_has_already_is_not_painted() {
    assert_modes(&[
        ("repair the photo with tears", Restore),
        ("repair the old photo with holes", Restore),
        ("repair the car with dents", Restore),
        ("repair the car with rust", Restore),
        ("fix the photo with watermark", Restore),
        ("fix the house with graffiti", Restore),
        ("fix broken tooth with gap", Restore),
        ("fix her teeth with braces", Restore),
        ("fix the wall with chipped paint", Restore),
        ("fix the house with missing bricks", Restore),
        ("repair the photo with new technology", Restore),
        ("repair the wall with red bricks", Edit),
        ("fix the floor with wood planks", Edit),
        ("mend the fence with fresh paint", Edit),
        ("reconstruct the car with a new door", Edit),
        ("enhance the photo with HDR", Enhance),
        ("enhance the photo with flash", Enhance),
        ("enhance image with chatgpt", Enhance),
        ("enhance image with artificial intelligence", Enhance),
        ("improve the image with lightroom", Enhance),
        ("enhance the sky with lightroom", Enhance),
        ("enhance the sky with more saturation", Enhance),
        ("enhance the face with glasses", Enhance),
        ("enhance the portrait with glasses", Enhance),
        ("enhance the dog with blue eyes", Enhance),
        ("enhance her eyes with glasses", Enhance),
        ("enhance her eyes with mascara", Edit),
        ("enhance the background with two people", Enhance),
        ("enhance the photo of my dog with blue eyes", Enhance),
        ("enhance the wall behind the man with glasses", Enhance),
        ("enhance the sky in the photo with stars", Edit),
        ("enhance the car with new wheels", Edit),
        ("improve her face with makeup", Edit),
        ("improve the garden with flowers", Edit),
        ("upgrade the car with a spoiler", Edit),
        ("upgrade the photo with a filter", Enhance),
    ]);
}
