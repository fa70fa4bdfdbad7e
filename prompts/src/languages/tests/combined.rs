//! Prompts of several requests in any language, and words that only look like requests.

use retouch_catalog::FixMode::{Add, Edit, Enhance, Remove, Restore};

use super::assert_modes;

#[test]
fn a_second_wish_does_not_repaint_what_is_mended() {
    assert_modes(&[
        ("remove the scratches and make it look new", Restore),
        ("remove scratches and make it clear", Restore),
        ("remove the scratches and make the colors vivid", Restore),
        ("Entferne die Kratzer und mach das Bild wie neu", Restore),
        ("Elimina los arañazos y haz que parezca nueva", Restore),
        ("remove the scratches and add color", Restore),
        ("remove the noise from the photo and make it bright", Enhance),
        ("remove blur and make it clear", Enhance),
        ("remove the blur and make it HD", Enhance),
        ("remove noise and make the colors pop", Enhance),
        ("remove the scratch and replace it with a flower", Edit),
        ("remove the noise and add a hat", Edit),
        ("remove the scratches and put a flower there", Edit),
        ("Entferne die Kratzer und füge Farbe hinzu", Restore),
        ("remove the man and add color", Edit),
        ("add color", Add),
    ]);
}

#[test]
fn a_natural_look_is_not_a_new_thing() {
    assert_modes(&[
        ("remove the background and make it clean white", Edit),
        ("remove the background and turn it into a clean studio", Edit),
        ("remove the background and change it to a realistic beach", Edit),
        ("remove the glasses and make her eyes a natural blue", Edit),
        ("Entferne den Hintergrund und mach ihn sauber weiß", Edit),
        ("Quita el fondo y haz un paisaje natural", Edit),
        ("Supprime le fond et transforme-le en plage réaliste", Edit),
        ("背景を消して自然の風景にして", Edit),
        ("remove the man and make it look natural", Remove),
        ("remove the man and make it look natural again please", Remove),
        ("remove the man and make it clean", Remove),
        ("remove the man and make sure nothing else changes", Remove),
        ("remove the man and make sure the wall looks good", Remove),
        ("remove the man and make sure to add a dog", Edit),
        ("remove the man and make sure you put a tree there", Edit),
        ("remove the man and turn the wall into a clean white wall", Edit),
        ("Entferne den Mann und mach es natürlich", Remove),
        ("Quita el coche y haz que se vea natural", Remove),
        ("背景を消してきれいな海にして", Edit),
        ("人を消して背景をきれいにして", Remove),
        ("人を消して自然な感じにして", Remove),
        ("remove the man and make it look real", Remove),
        ("remove the man and make it look normal", Remove),
        ("remove the person, make it look like he was never there", Remove),
        ("remove the person and make it look like nothing was there", Remove),
        ("remove the man and make the background match", Remove),
        ("remove the man and make it look empty", Remove),
        ("remove the pimples and make her skin smooth", Remove),
        ("remove the stains and make it look new", Remove),
        ("remove the man and make no other changes", Remove),
        ("Entferne das Auto und ändere sonst nichts", Remove),
        ("Entferne das Auto und mach sonst nichts", Remove),
        ("Entferne den Mann und mach es so, als wäre er nie da gewesen", Remove),
        ("Entferne die Pickel und mach die Haut glatt", Remove),
        ("Entferne den Mann und mach den Hintergrund passend", Remove),
        ("Quita el coche y haz que parezca real", Remove),
        ("Quita el coche y haz que el fondo se vea igual", Remove),
        ("Enlève les boutons et rends la peau lisse", Remove),
        ("人を消して元の背景にして", Remove),
        ("人を消して目立たなくして", Remove),
    ]);
}

#[test]
fn a_look_that_a_removal_leaves_is_not_a_new_thing() {
    assert_modes(&[
        ("remove the man and make it look like a beach", Edit),
        ("remove the car and make it look like a boat", Edit),
        ("remove the man and make the background blue", Edit),
        ("remove the man and make the background a beach", Edit),
        ("remove the pimples and make her skin blue", Edit),
        ("remove the man and make it look like a painting", Edit),
        ("remove the man and make it look red", Edit),
        ("remove the background and make it look smooth white", Edit),
        ("remove the hat and make her smile", Edit),
        ("remove the man and make the wall look like it did before", Remove),
        ("remove the man and make it look as if he was never there", Remove),
        ("Entferne den Mann und mach es rot", Edit),
        ("Entferne den Mann und mach die Wand rot", Edit),
        ("Entferne den Hut und mach die Haare glatt und blond", Edit),
        ("Quita el coche y haz que parezca una playa", Edit),
        ("Quita el coche y haz que el fondo se vea azul", Edit),
        ("Enlève la voiture et rends le fond noir", Edit),
        ("人を消して背景を海にして", Edit),
        ("remove the man and make it look as natural as possible", Remove),
        ("remove the man and make it look natural in the photo", Remove),
        ("remove the man and make it look natural with the surroundings", Remove),
        ("remove the man and make it natural-looking", Remove),
        ("Entferne den Mann und mach es so natürlich wie möglich", Remove),
        ("Quita el coche y haz que quede lo más natural posible", Remove),
        ("remove the background and make it clean and white", Edit),
        ("remove the background and make it clean, white", Edit),
        ("remove the hat and make the new car red", Edit),
        ("remove the man and make it a clean background", Edit),
        ("Auto entfernen und die Haut glatt machen", Remove),
        ("Hintergrund entfernen und sauber weiß machen", Edit),
        ("remove the man and make it match the wall", Remove),
        ("Quita el fondo y haz la pared lisa y azul", Edit),
        ("Remova o homem e mude a cor no fundo", Edit),
        ("去掉人，变成自然的风景", Edit),
        ("remove the man and make it look natural, no artifacts please", Remove),
        ("remove the man and make the background a beach", Edit),
        ("Enlève l'homme et rends-le comme avant", Remove),
    ]);
}

#[test]
fn a_removal_in_any_form_with_a_painting_in_any_form_is_an_edit() {
    for (removals, joint, paintings) in [
        (
            &["Quita el coche", "quitar el coche", "Elimínalo", "¿Puedes borrar el coche?"][..],
            "y",
            &[
                "pon un árbol",
                "poner un árbol",
                "ponlo blanco",
                "añádele un árbol",
                "hazlo blanco",
                "hacerlo blanco",
                "cámbialo por un árbol",
                "cambiarlos por árboles",
                "reemplázalos por árboles",
                "reemplazarlo por un árbol",
                "déjalo blanco",
                "pintarlo de rojo",
            ][..],
        ),
        (
            &["Enlève la voiture", "enlever la voiture", "Supprimez-la", "Tu peux l’enlever ?"],
            "et",
            &[
                "mets un arbre",
                "met un arbre",
                "mettre un arbre",
                "rends le fond blanc",
                "le rendre blanc",
                "rendre le ciel bleu",
                "change la couleur du manteau",
                "changer la couleur du manteau",
                "le remplacer par un arbre",
                "transforme-le en arbre",
            ],
        ),
        (
            &["Remova o carro", "remover o carro", "tira o carro", "Você pode apagar o carro?"],
            "e",
            &[
                "põe uma árvore",
                "coloque uma árvore",
                "colocar uma árvore",
                "troca por uma árvore",
                "trocar por uma árvore",
                "substitua por uma árvore",
                "substitui por uma árvore",
                "mude a cor do céu",
                "mudar a cor do céu",
                "deixe branco",
                "deixe o fundo branco",
            ],
        ),
    ] {
        for removal in removals {
            assert_modes(&[(removal, Remove)]);
            for painting in paintings {
                assert_modes(&[(&format!("{removal} {joint} {painting}"), Edit)]);
            }
        }
    }
}

#[test]
fn romance_paintings_have_the_forms_of_removals() {
    assert_modes(&[
        ("quitar el fondo y hacerlo blanco", Edit),
        ("quitar el coche y cambiarlo por un árbol", Edit),
        ("quitar el coche y reemplazarlo por un árbol", Edit),
        ("Elimina los coches y reemplázalos por árboles", Edit),
        ("Elimina los coches y cámbialos por árboles", Edit),
        ("Quita el fondo y ponlo blanco", Edit),
        ("Quita el fondo y déjalo blanco", Edit),
        ("enlever le fond et le rendre blanc", Edit),
        ("enlever le chapeau et changer la couleur du manteau", Edit),
        ("Enlève la voiture et met un arbre", Edit),
        ("remover o carro e trocar por uma árvore", Edit),
        ("Remova o fundo e troca por branco", Edit),
        ("Remova o fundo e deixe branco", Edit),
        ("remova o carro e substitui por uma árvore", Edit),
        ("tira o carro e põe uma árvore", Edit),
        ("Quita el coche y déjalo natural", Remove),
        ("Remova o carro e deixe natural", Remove),
        ("Remova o carro e deixe a foto mais nítida", Remove),
        ("Quita a la gente y deja el perro", Remove),
        ("enlève la voiture et laisse le chien", Remove),
        ("Remova o homem e deixe o fundo natural", Remove),
        ("Remova o homem e deixe assim", Remove),
        ("Remova o homem e deixe o cachorro", Remove),
        ("Quita el coche y déjalo vacío", Remove),
        ("Quita el coche y déjalo como está", Remove),
        ("Quita el coche y deja el fondo", Remove),
        ("Enlève l'homme et garde le transformer", Remove),
        ("remove the bed and changer", Remove),
        ("Enlève les boutons et rendre la peau lisse", Remove),
        ("Enlève la voiture et le rendre naturel", Remove),
    ]);
}

#[test]
fn what_a_prompt_makes_sure_of_is_a_request_unless_it_is_negated() {
    assert_modes(&[
        ("Remove the man and make sure you don't add anything", Remove),
        ("remove the man and make sure not to add new objects", Remove),
        ("remove the man and make sure you never add anything", Remove),
        ("remove the man and make sure no new object is put there", Remove),
        ("remove the man and make sure to add no new objects", Remove),
        ("remove the man and make sure the insert stays", Remove),
        ("remove the man and make sure the paint on the wall stays", Remove),
        ("remove the man, making sure not to draw anything", Remove),
        ("make sure you remove the man", Remove),
        ("remove the man and make sure to place a dog there", Edit),
        ("remove the man and make sure you draw a cat", Edit),
        ("remove the man and make sure that you build a house", Edit),
        ("remove the man and make sure to add a dog without a leash", Edit),
        ("remove the man and make sure you don't forget to add a dog", Edit),
        ("remove the man and make sure you change the sky to blue", Edit),
        ("remove the man, be sure to add a dog", Edit),
        ("make sure to add a dog", Add),
        ("Entferne den Mann und stelle sicher, dass nichts hinzugefügt wird", Remove),
        ("Entferne den Mann und mach sicher, dass nichts hinzugefügt wird", Remove),
        ("Entferne den Mann und achte darauf, nichts hinzuzufügen", Remove),
        ("Entferne den Mann und achte darauf, keinen Hund hinzuzufügen", Remove),
        ("Entferne den Mann und sorge dafür, dass es natürlich aussieht", Remove),
        ("Verbessere das Gesicht, ohne etwas hinzuzufügen", Enhance),
        ("Entferne den Mann und achte darauf, einen Hund hinzuzufügen", Edit),
        ("Entferne den Mann und vergiss nicht, einen Hund hinzuzufügen", Edit),
        ("Entferne den Mann und dafür einen Hund", Edit),
        ("Quita el coche y asegúrate de no añadir nada", Remove),
        ("Quita el coche y asegúrate de añadir un perro", Edit),
        ("Enlève la voiture et assure-toi de ne rien ajouter", Remove),
        ("Enlève la voiture et assure-toi d'ajouter un chien", Edit),
        ("Remova o carro e certifique-se de não adicionar nada", Remove),
        ("Remova o carro e certifique-se de adicionar um cachorro", Edit),
        ("人を消して、何も追加しないようにして", Remove),
        ("人を消して、必ず犬を追加して", Edit),
        ("去掉人，确保不要添加任何东西", Remove),
        ("去掉人，确保添加一只狗", Edit),
        ("去掉人，一定要加一只狗", Edit),
    ]);
}

#[test]
fn a_removal_beside_an_enhancement_is_a_removal() {
    assert_modes(&[
        ("enhance the photo and remove the man", Remove),
        ("enhance the photo, remove the man and his shadow", Remove),
        ("restore the photo and remove the man", Remove),
        ("make it sharper and remove the man", Remove),
        ("remove the noise, then remove the man", Remove),
        ("Bild verbessern und Person entfernen", Remove),
        ("Mejora la foto y quita el coche", Remove),
        ("Améliore la photo et enlève la voiture", Remove),
        ("Melhore a foto e remova o carro", Remove),
        ("写真を鮮明にして、人を消して", Remove),
        ("增强照片，去掉路人", Remove),
        ("enhance the photo, remove the man and add a dog", Edit),
        ("remove the text and scratches", Restore),
        ("enhance the photo and remove stains", Enhance),
        ("mejora el retrato y quita las sombras", Enhance),
        ("写真を鮮明にしてシミを消して", Enhance),
        ("增强照片，去掉污渍", Enhance),
        ("enhance the photo, without the man", Enhance),
        ("enhance the photo and clean the wall", Enhance),
    ]);
}

#[test]
fn a_painting_beside_an_enhancement_is_an_edit() {
    assert_modes(&[
        ("enhance her lips, paint them red", Edit),
        ("enhance the photo and add a hat", Edit),
        ("enhance the photo and replace the sky", Edit),
        ("restore the photo and add a hat", Edit),
        ("Verbessere das Foto und füge einen Hut hinzu", Edit),
        ("enhance the photo and make it brighter", Enhance),
        ("enhance the photo and add more contrast", Enhance),
        ("enhance the photo and give it a fresh look", Enhance),
        ("restore the photo and add color", Restore),
        ("写真を修復して色を付けて", Restore),
        ("修复照片，添加颜色", Restore),
        ("restore the photo, replace nothing", Restore),
        ("enhance the photo, use an AI upscaler", Enhance),
        ("enhance the photo instead", Enhance),
    ]);
}

#[test]
fn descriptions_remove_nothing() {
    assert_modes(&[
        ("ohne Brille lächelnd", Edit),
        ("ohne Brille, lächelnd", Edit),
        ("ohne Leute am Abend", Remove),
        ("ohne den störenden Hund", Remove),
        ("no céu", Edit),
        ("no chão", Edit),
        ("no text", Remove),
        ("人を消して、赤いドレスの女性", Edit),
        ("人を消して、左の人", Remove),
        ("人を消して、この人", Remove),
        ("人を消して、至急", Remove),
        ("人を消して、きれいな状態", Remove),
        ("車の削除をお願いします", Remove),
    ]);
}

#[test]
fn what_follows_a_verb_belongs_to_it() {
    assert_modes(&[
        ("remove the text and type HELLO", Edit),
        ("remove the text and type SALE, thanks", Edit),
        ("Entferne den Mann und mach, dass es echt aussieht", Remove),
        ("Entferne den Mann und mach, dass es rot aussieht", Edit),
        ("もっときれいにして", Enhance),
        ("人を消して、もっときれいにして", Remove),
        ("人を消してもっときれいにして", Remove),
        ("人を消してもっときれいな海にして", Edit),
        ("もっときれいな海にして", Edit),
    ]);
}

#[test]
fn chinese_replacements_have_their_modes() {
    assert_modes(&[
        ("去掉背景，换白底", Edit),
        ("把背景去掉换白底", Edit),
        ("去掉背景换白色", Edit),
        ("去掉人物并换背景", Edit),
        ("把帽子去掉，头发变红色", Edit),
        ("去掉车，种一棵树", Edit),
        ("去掉车，放棵树", Edit),
        ("去掉文字，写“你好”", Edit),
        ("我需要去掉这个人", Remove),
        ("需要去掉水印", Remove),
        ("想去掉水印", Remove),
        ("这个人去掉好吗", Remove),
        ("去掉换衣服的人", Remove),
        ("去掉更换的招牌", Remove),
        ("去掉放风筝的人", Remove),
        ("去掉写字的人", Remove),
        ("去掉种树的人", Remove),
        ("去掉划痕，把照片变成彩色", Restore),
        ("去掉人，背景不变", Remove),
        ("去掉人，其他保持不变", Remove),
        ("去掉路人，让照片变得更自然", Remove),
        ("去掉路人，让照片变清晰", Remove),
        ("把换衣服的人去掉", Remove),
        ("去掉变形的人", Remove),
        ("去掉变成石头的人", Remove),
        ("去掉各种一次性杯子", Remove),
        ("去掉这种杯子", Remove),
        ("去掉背景变成白色", Edit),
        ("把背景去掉变白色", Edit),
        ("去掉车换棵绿色的树", Edit),
        ("能把照片修好吗", Restore),
        ("不需要去掉这个人", Edit),
        ("想象一座城堡", Edit),
        ("去掉背景，加盏灯", Edit),
    ]);
}

#[test]
fn requests_after_a_sentence_are_not_descriptions() {
    assert_modes(&[
        ("There is a man on the left, delete him", Remove),
        ("In this photo, delete the man", Remove),
        ("Here is my photo, please delete the person on the left", Remove),
        ("Hi there, delete the man", Remove),
        ("Retouch, remove the man", Remove),
        ("a castle on a hill, highly detailed, enhance", Edit),
        ("portrait of a woman, soft light, retouch", Edit),
        ("Retouch, please", Restore),
        ("retouch", Restore),
        ("retouch the photo", Restore),
        ("A beach, clear sky, no people", Edit),
        ("a red car, clean background", Edit),
        ("a photo of the sea, delete key on a keyboard", Edit),
        ("my face, enhance", Enhance),
        ("a beach, without the people", Edit),
        ("a kitchen, clean and bright, no people", Edit),
        ("There is a man here, cut him out", Remove),
        ("retouch and remove the scratches", Restore),
        ("Hey Retouch, enhance the face", Enhance),
    ]);
}

#[test]
fn what_must_not_change_is_not_removed() {
    assert_modes(&[
        ("Without changing anything else, enhance the face", Enhance),
        ("without changing her face, restore the photo", Restore),
        ("ohne das Gesicht zu verändern, schärfe das Bild", Enhance),
        ("Sem alterar o fundo, melhore o rosto", Enhance),
        ("without changing anything, remove the man", Remove),
        ("sem mudar nada, remova o carro", Remove),
        ("without the ring, but with a flower", Edit),
        ("without the string", Remove),
        ("sem mulher", Remove),
        ("sem colar", Remove),
        ("without the building", Remove),
        ("without anything on the table", Remove),
        ("remove the man without changing the background", Remove),
        ("ohne den Zaun", Remove),
    ]);
}

#[test]
fn what_does_not_replace_a_removed_thing() {
    assert_modes(&[
        ("remove the man, do not replace him", Remove),
        ("remove the man and don't replace it with anything", Remove),
        ("Entferne den Mann und ersetze ihn nicht", Remove),
        ("now remove the woman instead", Remove),
        ("Remove the person and replace with the background", Remove),
        ("remove them and replace them with the background", Remove),
        ("entferne den Mann und ersetze ihn durch den Hintergrund", Remove),
        ("remove the text \"Sale, change now\"", Remove),
        ("clean up the photo and remove the man", Remove),
        ("去掉模糊人物", Remove),
        ("去除模糊背景", Remove),
        ("give the face more details", Enhance),
        ("upgrade the car to a Ferrari", Edit),
        ("erase him and add a red circle instead", Edit),
        ("remove the hat and put a cap instead", Edit),
        ("remove the person and replace with a white background", Edit),
        ("remove the person and replace the background with a beach", Edit),
        ("Replace the man with the background", Remove),
        ("replace them with the background", Remove),
        ("ersetze ihn durch den Hintergrund", Remove),
        ("remove the woman with a tree instead", Edit),
        ("remove the hat, a cap instead", Edit),
        ("replace the man with the background of a beach", Edit),
        ("remove the text \"Sale\" and write \"Open, add now\"", Edit),
        ("\"remove the man, add a tree\"", Edit),
        ("去除模糊和噪点", Enhance),
        ("把模糊去掉", Enhance),
        ("clean up the photo and sharpen it", Enhance),
        ("clean the wall and add a tree", Edit),
        ("give the man a sharper knife", Add),
        ("gib dem Gesicht mehr Details", Enhance),
        ("a man, ripped jeans, cut off", Edit),
        ("upgrade the photo", Enhance),
        ("upgrade to a higher resolution", Enhance),
    ]);
}

#[test]
fn more_english_verbs_paint() {
    assert_modes(&[
        ("remove the logo and substitute it with ours", Edit),
        ("remove the background and use a white one", Edit),
        ("remove the text and type SALE", Edit),
        ("remove the text and type \"hello\"", Edit),
        ("remove the hat, dye his hair red", Edit),
        ("remove the hat, color his hair red", Edit),
        ("remove the man, fill in with a tree", Edit),
        ("remove the sign and install a lamp", Edit),
        ("remove the sign and build a lamp", Edit),
        ("remove the sign and hang a lamp", Edit),
        ("erase the sky and draw clouds", Edit),
        ("remove the man and fill in the background", Remove),
        ("remove the drawing and the paint", Remove),
        ("remove the man and fill with the background", Remove),
        ("remove the man and use the background", Remove),
        ("remove the type and color", Remove),
        ("remove paint and draw lines", Edit),
        ("remove the man and fill it with a natural background", Remove),
        ("remove the man and fill it with a matching background", Remove),
        ("remove the logo and the type", Remove),
        ("remove the drawing, type and color", Remove),
        ("remove the tape and paint marks", Remove),
        ("remove the hat and paint his hair", Edit),
        ("remove the build and install bars", Remove),
    ]);
}

#[test]
fn japanese_closing_phrases_ask_for_nothing() {
    assert_modes(&[
        ("車を消してください。よろしくお願いします。", Remove),
        ("人を消して、背景はそのまま", Remove),
        ("人を消して、背景はそのままにして", Remove),
        ("人を消して、背景はそのままにしてください", Remove),
        ("人を消して、背景は変えないで", Remove),
        ("人を消してください。背景は自然に", Remove),
        ("人を消してね", Remove),
        ("人を消してくれ", Remove),
        ("人を消してちょうだい", Remove),
        ("電気を消して暗くした部屋", Edit),
        ("人を消さないで", Edit),
        ("人を消して、代わりに木を置いて", Edit),
        ("人を消してください。空を青くして", Edit),
        ("車を消してよろしくお願いします", Remove),
    ]);
}

#[test]
fn a_whole_prompt_may_say_only_what_is_to_be_missing() {
    assert_modes(&[
        ("sin gente", Remove),
        ("sin texto", Remove),
        ("sin gafas", Remove),
        ("sans lunettes", Remove),
        ("sans texte", Remove),
        ("sin city", Edit),
        ("sans serif", Edit),
        ("no people", Remove),
        ("no text", Remove),
        ("no parking sign", Edit),
        ("a beach, no people", Edit),
        ("no glasses please", Remove),
        ("no entry", Edit),
        ("no way", Edit),
        ("no", Edit),
        ("no quites", Edit),
        ("no borrar", Edit),
        ("no smoking", Edit),
        ("no scratches", Restore),
        ("sin ruido", Enhance),
        ("sans serif letters", Edit),
        ("a man, no hat", Edit),
        ("sin wave", Edit),
    ]);
}

#[test]
fn more_requests_have_their_modes() {
    assert_modes(&[
        ("plz remove the car", Remove),
        ("try to remove the car", Remove),
        ("is it possible to remove the car?", Remove),
        ("simply remove the car", Remove),
        ("carefully remove the car", Remove),
        ("Das Auto soll weg", Remove),
        ("Auto weg", Remove),
        ("Kratzer weg", Restore),
        ("Nimm den Mann aus dem Bild", Remove),
        ("Schneide den Mann raus", Remove),
        ("Erhöhe die Auflösung", Enhance),
        ("Saca el coche", Remove),
        ("Haz que el coche desaparezca", Remove),
        ("Apagar pessoas", Remove),
        ("tirar pessoas", Remove),
        ("Faça o carro desaparecer", Remove),
        ("ロゴを取って", Remove),
        ("メガネを外して", Remove),
        ("古い写真を直して", Restore),
        ("increase the resolution", Enhance),
        ("increase sharpness", Enhance),
        ("reduce image noise", Enhance),
        ("make it HD", Enhance),
        ("Ein langer Weg", Edit),
        ("weit weg", Edit),
        ("Weit weg", Edit),
        ("Ein Weg", Edit),
        ("Mein weg", Edit),
        ("Nimm die Farbe aus dem Bild", Edit),
        ("Nimm den Mann nicht aus dem Bild", Edit),
        ("Saca la lengua", Edit),
        ("Haz que no desaparezca", Edit),
        ("try a red dress", Edit),
        ("remove the man and make it look natural, cheers", Remove),
        ("手を取って歩く二人", Edit),
    ]);
}

#[test]
fn near_counterexamples_have_their_modes() {
    assert_modes(&[
        ("remove the man and make the dog bigger", Edit),
        ("remove the beard and make him look younger", Edit),
        ("remove the clouds and make the sky clear blue", Edit),
        ("remove the man and change the background", Edit),
        ("remove the man, don't change anything else", Remove),
        ("remove the wrinkles and make her look natural but younger", Edit),
        ("remove the no smoking sign", Remove),
        ("without changing the face remove the hat", Remove),
        ("Entferne den Mann und mach den Himmel blauer", Edit),
        ("Entferne das Auto und ersetze den Hintergrund", Edit),
        ("Der Weg ist weg", Edit),
        ("Quita el texto y deja solo el fondo", Remove),
        ("Quita la pinta del suelo", Remove),
        ("Elimina todo y deja el fondo blanco", Edit),
        ("sin sonreír", Edit),
        ("Enlève le texte et ne change rien d'autre", Remove),
        ("Enlève le texte et change le fond", Edit),
        ("Remova o carro e faça uma casa", Edit),
        ("人を消して、自然な背景にして", Remove),
        ("人を消して、きれいな背景にして", Remove),
        ("去掉路边变电箱", Remove),
        ("去掉天花板换气扇", Remove),
        ("去掉眼镜，让眼睛变大", Edit),
        ("让他变年轻", Edit),
    ]);
}

#[test]
fn longer_looks_and_paintings_have_their_modes() {
    assert_modes(&[
        ("remove the man and use an AI fill", Remove),
        ("remove the man and use the background to fill", Remove),
        ("remove the man and make it like he is not there", Remove),
        ("remove the man and make it look like the original", Remove),
        ("remove the man and make the picture perfect", Remove),
        ("remove the acne and make the skin clear", Remove),
        ("remove the braces and make the teeth white", Edit),
        ("remove the double chin and make the neck thinner", Edit),
        ("get rid of the man and make the wall blank", Edit),
        ("remove the hat and make sure his hair looks natural", Remove),
        ("Entferne die Person und mach den Hintergrund wieder so wie vorher", Remove),
        ("Elimina a la persona y haz como si nunca hubiera estado", Remove),
        ("Elimina al hombre y no lo reemplaces", Remove),
        ("Supprime la personne et fais comme si elle n'avait jamais été là", Remove),
        ("Remova a pessoa e deixe tudo natural", Remove),
        ("人を消して、背景だけにして", Remove),
        ("人を消して何もない状態にして", Remove),
        ("人を消して壁を白くして", Edit),
        ("文字を消して「春」と書いて", Edit),
        ("去掉痘痘，让皮肤变光滑", Remove),
        ("去掉皱纹，皮肤变得光滑", Remove),
        ("把人去掉，背景换为雪山", Edit),
    ]);
}
