//! Prompts that remove something, in any language and form.

use retouch_catalog::FixMode::{Add, Edit, Enhance, Remove, Restore};

use super::assert_modes;

#[test]
fn english_removals_have_more_forms() {
    assert_modes(&[
        ("can u remove the watermark", Remove),
        ("edit out the power lines", Remove),
        ("photoshop out the tourists", Remove),
        ("crop out the man", Remove),
        ("paint out the wires", Remove),
        ("clone out the sign", Remove),
        ("airbrush out the tattoo", Remove),
        ("Could you possibly remove the reflection in the window?", Remove),
        ("would you mind removing the cable", Remove),
        ("Take the guy in the red shirt out of my wedding pic", Remove),
        ("take that thing out of my pic", Remove),
        ("take the man out of the frame", Remove),
        ("get him out of this image", Remove),
        ("cut the man out of the old photo", Remove),
        ("take the watermark away from the picture", Remove),
        ("u-turn sign", Edit),
        ("mind the gap sign", Edit),
        ("a man painted out of clay", Edit),
        ("take the cup out of her hand", Edit),
        ("get the man out of the shadow", Edit),
        ("take the photo out of the frame", Edit),
        ("take a look at the picture", Edit),
        ("edit", Edit),
        ("a photoshop outtake", Edit),
        ("paint the wires red and blue", Add),
    ]);
}

#[test]
fn what_people_do_not_want_is_removed() {
    assert_modes(&[
        ("I don't want the pole there", Remove),
        ("I don't want the pole", Remove),
        ("I don't want this lamp post here", Remove),
        ("I don't want any cars", Remove),
        ("I don't want any cars in the picture", Remove),
        ("I do not want him in the photo", Remove),
        ("There is a pole on the left, I don't want it there", Remove),
        ("I don't want you to remove the dog", Edit),
        ("I don't want the dog removed", Edit),
        ("I don't want it red", Edit),
        ("I don't want the sky blue", Edit),
        ("I don't want any changes", Edit),
        ("I don't want him to smile", Edit),
        ("I don't want to remove the dog", Edit),
        ("I don't want it", Remove),
        ("enhance the face, I don't want any makeup", Enhance),
        ("remove the man, I don't want any changes to the wall", Remove),
        ("I don't want the hat, make it a cap", Edit),
    ]);
}

#[test]
fn german_removals_have_more_forms() {
    assert_modes(&[
        ("Das Auto soll verschwinden", Remove),
        ("Der Mann soll raus", Remove),
        ("Die Leute müssen verschwinden", Remove),
        ("Ich möchte, dass das Auto verschwindet", Remove),
        ("Ich möchte, dass du das Auto entfernst", Remove),
        ("Das Auto soll entfernt werden", Remove),
        ("Den Mann da hinten bitte rausmachen", Remove),
        ("Person rausschneiden", Remove),
        ("Auto ausradieren", Remove),
        ("Leute im Hintergrund wegzaubern", Remove),
        ("bitte den text weg machen", Remove),
        ("Logo raus", Remove),
        ("Logo raus bitte", Remove),
        ("keine Autos", Remove),
        ("keine Autos bitte", Remove),
        ("Kratzer raus", Restore),
        ("Ich möchte, dass du das Bild verbesserst", Enhance),
        ("Das Auto soll nicht verschwinden", Edit),
        ("Das Auto soll rot werden", Edit),
        ("Zunge raus", Edit),
        ("Arm raus", Edit),
        ("Kopf raus", Edit),
        ("Bauch raus", Edit),
        ("lass die Zunge raus", Edit),
        ("Pass auf, dass der Hund nicht verschwindet", Edit),
        ("einen Weg machen", Edit),
        ("keine Ahnung", Edit),
        ("keine Änderungen", Edit),
        ("kein Problem", Edit),
        ("Keine Sorge", Edit),
        ("Kein Rauchen", Edit),
        ("Kein Rauschen", Enhance),
        ("ein Mann, keine Haare", Edit),
        ("Das Auto soll nicht entfernt werden", Edit),
        ("der Hund schaut raus", Edit),
        ("Ich möchte, dass du das Auto nicht entfernst", Edit),
    ]);
}

#[test]
fn romance_removals_have_more_forms() {
    assert_modes(&[
        ("Il faut enlever le logo", Remove),
        ("Il faudrait supprimer la voiture", Remove),
        ("Retire-lui ses lunettes", Remove),
        ("Retire-moi ça", Remove),
        ("débarrasse-toi du câble", Remove),
        ("il faut que le ciel soit bleu", Edit),
        ("il enlève son chapeau", Edit),
        ("Il ne faut pas enlever le logo", Edit),
        ("retire lui-même le chapeau de la table bleue et rends-le rouge", Edit),
        ("Elimíname el logo", Remove),
        ("Bórrame esto", Remove),
        ("Quítame esta mancha", Remove),
        ("Deshazte del poste", Remove),
        ("deshazte de la gente", Remove),
        ("ponme un sombrero y pinta la pared", Add),
        ("Elimíname el logo y pon una flor", Edit),
        ("no te deshagas del poste", Edit),
        ("Faz sumir o cachorro", Remove),
        ("faz desaparecer o poste", Remove),
        ("Some com o poste", Remove),
        ("Tira ele e deixa natural", Remove),
        ("tire ela da foto", Remove),
        ("Tira ele e coloca eu", Edit),
        ("Tira ele e deixa branco", Edit),
        ("ele tira o chapéu", Edit),
        ("some commuters", Edit),
        ("tira cômica", Edit),
        ("Faz um gato", Edit),
        ("não tira ele", Edit),
        ("no texto", Remove),
    ]);
}

#[test]
fn chinese_and_japanese_removals_have_more_forms() {
    assert_modes(&[
        ("不要这个人", Remove),
        ("我不想要这个杆子", Remove),
        ("我不要那些电线", Remove),
        ("让这个人消失", Remove),
        ("让路人都消失吧", Remove),
        ("把垃圾桶弄走", Remove),
        ("请把杂物清理掉", Remove),
        ("不要这条划痕", Restore),
        ("不要这样", Edit),
        ("不要这个颜色", Edit),
        ("不要动脸", Edit),
        ("不要让这个人消失", Edit),
        ("消失的城市", Edit),
        ("不要这个人，换成一只狗", Edit),
        ("让颜色消失", Edit),
        ("不要把这个人弄走", Edit),
        ("别清理掉", Edit),
        ("これ消せますか？", Remove),
        ("この人消せる？", Remove),
        ("電線いらない", Remove),
        ("この人は要らないです", Remove),
        ("電柱いりません", Remove),
        ("傷を消せますか", Restore),
        ("消せるボールペン", Edit),
        ("変更はいらない", Edit),
        ("加工を消して", Remove),
        ("写真を鮮明にして、加工はいらない", Enhance),
        ("お金がいらない人", Edit),
        ("消せない", Edit),
        ("人を消して、青空", Edit),
        ("人を消して、海", Edit),
        ("人を消して、ビーチ", Edit),
        ("人を消して、至急", Remove),
        ("人を消して、電線", Remove),
        ("人を消して、背景", Remove),
    ]);
}

#[test]
fn what_only_looks_like_a_removal_is_none() {
    assert_modes(&[
        ("Alles was nicht passt soll weg", Remove),
        ("Der Hund soll nicht weg", Edit),
        ("dass das Haus rot wird", Edit),
        ("Der Zug fährt weit weg", Edit),
        ("sin ella no", Edit),
        ("la dame rouge", Edit),
        ("ella", Edit),
        ("crop", Edit),
        ("edit the sky", Edit),
        ("take a photo", Edit),
        ("draw the man going out of the frame", Add),
        ("I want the sky blue", Edit),
        ("I don't want", Edit),
        ("这个人不要动", Edit),
        ("让天空变蓝", Edit),
        ("海", Edit),
    ]);
}
