//! The modes of prompts in the other languages that the page speaks. A prompt that begins with none of their verbs is
//! read as English.

mod words;

use retouch_catalog::FixMode;

use self::words::{CHINESE, FRENCH, GERMAN, JAPANESE, PORTUGUESE, SPANISH, Words};
use super::meaning::{contains, leading, words_of};

/// One of the lists.
type List = fn(&Words) -> &'static [&'static str];

/// The languages with spaces between words. A word means the same in all of them.
const SPACED: [Words; 4] = [GERMAN, SPANISH, FRENCH, PORTUGUESE];

/// Words that join a second request to the first.
const JOINTS: [&str; 13] = [
    "und", "aber", "dafuer", "dann", "y", "e", "pero", "luego", "et", "mais", "puis", "mas",
    "depois",
];

/// English prompts that begin like Spanish ones.
const ENGLISH: [&str; 4] =
    ["quite al fresco", "quite al dente", "quite a la carte", "quite a la mode"];

/// Returns the mode that a prompt means in one of these languages; `None` if no verb is recognized.
pub(super) fn mode_of(text: &str) -> Option<FixMode> {
    let plain = folded(text);
    spaced(text, &plain).or_else(|| unspaced(&plain))
}

/// Applies the table in [`super`]. `asks` says whether the prompt's verb is in a list, `has` whether a word of it is
/// anywhere, and `adds` whether a removal is followed by a request to add a thing.
fn decide(asks: impl Fn(List) -> bool, has: impl Fn(List) -> bool, adds: bool) -> Option<FixMode> {
    let takes_away = asks(|words| words.remove);
    let has_damage = takes_away && has(|words| words.damage);
    let has_defects = takes_away && has(|words| words.defects);
    let adds_details = (has_damage || has_defects) && has(|words| words.detail);
    let mode = if takes_away && (has(|words| words.instead) || adds && !adds_details) {
        FixMode::Edit
    } else if has_damage {
        FixMode::Restore
    } else if has_defects || has(|words| words.detail) {
        FixMode::Enhance
    } else if takes_away {
        FixMode::Remove
    } else if asks(|words| words.enhance) {
        FixMode::Enhance
    } else if asks(|words| words.restore) {
        FixMode::Restore
    } else if asks(|words| words.add) {
        FixMode::Add
    } else {
        return None;
    };
    Some(mode)
}

fn spaced(text: &str, plain: &str) -> Option<FixMode> {
    let clauses: Vec<_> = plain.split([',', '.', ';', ':', '!', '?']).map(split).collect();
    let words = clauses.concat();
    let is_courtesy =
        |word: &&String| SPACED.iter().any(|language| language.courtesy.contains(&word.as_str()));
    let start = words.iter().take_while(is_courtesy).count();
    let end = words.len() - words.iter().rev().take_while(is_courtesy).count();
    let words = words.get(start..end)?;
    if is_negated(&clauses) || leading(words, &ENGLISH).is_some() || turns_off_lights(words) {
        return None;
    }
    // An infinitive at the end: "das Auto entfernen", but not "beim Entfernen".
    let infinitive = split_verb(text, words).or(match words {
        [.., before, last] if !["beim", "zum", "am", "zu", "nicht"].contains(&before.as_str()) => {
            Some(last.as_str()).filter(|last| last.ends_with("en"))
        }
        _ => None,
    });
    decide(
        |list| {
            SPACED.iter().any(|language| {
                leading(words, list(language)).is_some()
                    || infinitive.is_some_and(|verb| list(language).contains(&verb))
            })
        },
        |list| SPACED.iter().any(|language| contains(words, list(language))),
        has_second_addition(&clauses) || is_without_but_with(&clauses),
    )
}

/// Returns what may be requests after the first: each later clause, and the rest of a clause after a joining word.
fn second_requests(clauses: &[Vec<String>]) -> impl Iterator<Item = &[String]> {
    clauses.iter().enumerate().flat_map(|(number, clause)| {
        (0..clause.len())
            .filter(move |at| match at.checked_sub(1) {
                Some(before) => JOINTS.contains(&clause[before].as_str()),
                None => number > 0,
            })
            .map(|at| &clause[at..])
    })
}

/// Returns true if a request after the first adds a thing: "quita el coche y pon un árbol". One that includes or completes
/// something does not: "entferne den Mann und ergänze den Hintergrund".
fn has_second_addition(clauses: &[Vec<String>]) -> bool {
    second_requests(clauses).any(|request| {
        let (Some(first), Some(last)) = (request.first(), request.last()) else { return false };
        let completes = ["ergaenz", "inclu"].iter().any(|start| first.starts_with(start));
        let places = ["stell", "stelle"].contains(&first.as_str()) && last != "her";
        let adds = SPACED.iter().any(|language| leading(request, language.add).is_some());
        places || adds && !completes || ["hin", "hinzu"].contains(&last.as_str())
    })
}

/// Recognizes "ohne den Text, mit Logo", but not "ohne den Mann mit Hut".
fn is_without_but_with(clauses: &[Vec<String>]) -> bool {
    clauses.first().and_then(|clause| clause.first()).is_some_and(|word| word == "ohne")
        && second_requests(clauses).any(|request| request[0] == "mit")
}

/// Recognizes "entferne das Auto nicht", but neither "entferne alles was nicht passt" nor "entferne nicht nur das Auto". In
/// the other languages, a negation comes before the verb.
fn is_negated(clauses: &[Vec<String>]) -> bool {
    let Some(clause) = clauses.iter().find(|words| words.len() > 1) else { return false };
    let words = clause.strip_prefix(&["bitte".to_owned()]).unwrap_or(clause);
    let is_one_of = |word: Option<&String>, list: &[&str]| {
        word.is_some_and(|word| list.contains(&word.as_str()))
    };
    let last = words.last();
    (0..words.len()).any(|at| {
        let (before, next) =
            (at.checked_sub(1).and_then(|before| words.get(before)), words.get(at + 1));
        let is_first = at <= 1;
        match words[at].as_str() {
            "nichts" => is_first,
            "nicht" => {
                let is_before_verb = is_one_of(last, GERMAN.remove)
                    && !is_one_of(before, &["du", "sie", "der", "die", "das", "den", "was"]);
                next.is_none()
                    || is_one_of(next, &["raus", "weg", "verschwinden"])
                    || is_first
                        && is_one_of(next, &["das", "den", "die", "diese", "diesen", "dieses"])
                    || is_before_verb
            }
            word => is_first && word.starts_with("kein"),
        }
    })
}

/// Recognizes "apague a luz (da sala)", which turns it off; "apague a luz do poste" is a removal.
fn turns_off_lights(words: &[String]) -> bool {
    let [verb, _, light, place @ ..] = words else { return false };
    let is_room = |word: &String| ["quarto", "sala", "cozinha", "casa"].contains(&word.as_str());
    verb.starts_with("apag")
        && ["luz", "luzes", "vela", "velas"].contains(&light.as_str())
        && (place.is_empty() || place.len() == 2 && is_room(&place[1]))
}

/// Returns the infinitive that means the same as a verb whose parts stand apart: "mach das Auto weg", "lass den Mann
/// verschwinden", "stelle das Foto wieder her", "rends le texte plus net". "Weg" is also a path, and "lass den
/// Hund raus" lets the dog out.
fn split_verb(text: &str, words: &[String]) -> Option<&'static str> {
    let [verb, .., before, last] = words else { return None };
    let begins = |verbs: &[&str]| verbs.contains(&verb.as_str());
    if begins(&["rends", "rendez", "rendre"]) && contains(words, &["plus net", "plus nets"]) {
        return Some("ameliorer");
    }
    if begins(&["stell", "stelle"]) && before == "wieder" && last == "her" {
        return Some("wiederherstellen");
    }
    let is_article =
        ["ein", "einen", "einem", "einer", "den", "dem", "der"].contains(&before.as_str());
    let goes = match last.as_str() {
        "weg" => words_of(text).contains(&"weg") && !is_article,
        // "Hol das Beste raus" asks for an enhancement.
        "raus" => !begins(&["lass", "lasse"]) && (before == "da" || !begins(&["hol", "hole"])),
        "verschwinden" => true,
        _ => false,
    };
    let makes = ["mach", "mache", "lass", "lasse", "nimm", "hol", "hole", "retuschiere", "radiere"];
    (goes && begins(&makes)).then_some("entfernen")
}

fn unspaced(plain: &str) -> Option<FixMode> {
    let text = plain.trim_matches(|c: char| !c.is_alphanumeric());
    let (mut japanese, mut chinese) = (text, text.trim_end_matches(['吗', '吧']));
    while let Some(rest) = JAPANESE.courtesy.iter().find_map(|word| japanese.strip_suffix(word)) {
        japanese = rest;
    }
    while let Some(rest) = CHINESE.courtesy.iter().find_map(|word| chinese.strip_prefix(word)) {
        chinese = rest;
    }
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let found = decide(
        |list| list(&JAPANESE).iter().any(|verb| japanese.ends_with(verb)),
        |list| has(list(&JAPANESE)),
        false,
    );
    if found.is_some() || chinese.contains("不要") || chinese.starts_with(['勿', '别']) {
        return found;
    }
    let moves = chinese.starts_with(['把', '将']);
    // "他加的" only names a thing.
    let adds =
        |part: &str| !part.contains('的') && CHINESE.add.iter().any(|verb| part.contains(verb));
    decide(
        |list| {
            list(&CHINESE).iter().any(|verb| {
                chinese.starts_with(verb)
                    || chinese.ends_with(verb)
                    || moves && chinese.contains(verb)
            })
        },
        |list| has(list(&CHINESE)),
        // The words between 把 and the verb only name the thing: "把后来加上的字去掉".
        CHINESE.remove.iter().filter_map(|verb| chinese.split_once(verb)).any(|(before, after)| {
            adds(after) || before.split(['把', '将']).next().is_some_and(adds)
        }),
    )
}

/// Splits folded text into words: "remova-o" and "l'homme" are two each. "S'il" is one, because "il" alone is not a
/// courtesy.
fn split(plain: &str) -> Vec<String> {
    let mut words = vec![];
    for part in words_of(plain).into_iter().flat_map(|word| word.split('-')) {
        let article = part.find('\'').filter(|_| part != "s'il").map_or(0, |at| at + 1);
        let (article, noun) = part.split_at(article);
        words
            .extend([article, noun].into_iter().filter(|word| !word.is_empty()).map(str::to_owned));
    }
    words
}

/// Returns a text in lower case and without accents. An umlaut becomes two letters, as people write it without one:
/// "schärfer" is sharper, and "scharfer" is sharp.
fn folded(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for letter in text.chars().flat_map(char::to_lowercase) {
        match letter {
            'ä' => plain.push_str("ae"),
            'ö' => plain.push_str("oe"),
            'ü' => plain.push_str("ue"),
            'à'..='ã' => plain.push('a'),
            'ç' => plain.push('c'),
            // The last is an umlaut that follows its letter.
            'è'..='ë' | '\u{308}' => plain.push('e'),
            'ì'..='ï' => plain.push('i'),
            'ñ' => plain.push('n'),
            'ò'..='õ' => plain.push('o'),
            'ù'..='û' => plain.push('u'),
            '’' => plain.push('\''),
            // Other accents that follow their letter.
            '\u{300}'..='\u{36f}' => {}
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use retouch_catalog::FixMode::{self, Add, Edit, Enhance, Remove, Restore};

    use super::super::Prompt;

    fn assert_modes(prompts: &[(&str, FixMode)]) {
        for (text, mode) in prompts {
            let prompt = Prompt::parse(text).expect("a prompt");
            assert_eq!(prompt.mode(), *mode, "{text}");
        }
    }

    #[test]
    fn german_prompts_have_their_modes() {
        assert_modes(&[
            ("Entferne das Auto", Remove),
            ("Bitte das Auto entfernen", Remove),
            ("Kannst du den Mann im Hintergrund löschen?", Remove),
            ("Entfernen Sie bitte die Leute.", Remove),
            ("mach das Auto weg", Remove),
            ("Mach bitte die Leute im Hintergrund weg!", Remove),
            ("Lass den Mann verschwinden", Remove),
            ("Entferne die Kratzer", Restore),
            ("Entferne das Rauschen", Enhance),
            ("Restauriere das alte Foto", Restore),
            ("altes Foto restaurieren", Restore),
            ("Verbessere die Augen", Enhance),
            ("das Gesicht schärfen", Enhance),
            ("mach es schärfer", Enhance),
            ("Füge mehr Details hinzu", Enhance),
            ("Füge einen Hut hinzu", Add),
            ("einen Hut hinzufügen", Add),
            ("Entferne das Auto und füge eine Blume hinzu", Edit),
            ("Entferne das Auto und setze einen Baum an seine Stelle", Edit),
            ("Ersetze das Auto durch einen Baum", Edit),
            ("ein rotes Auto", Edit),
            ("Mach es blau", Edit),
            ("mach hier einen Weg", Edit),
            ("Mach die Wiese zu einem Weg", Edit),
            ("den Hut nicht entfernen", Edit),
            ("Würdest du bitte das Auto loeschen?", Remove),
            ("Nimm das Auto raus", Remove),
            ("Retuschiere die Leute weg", Remove),
            ("ohne den Mast", Remove),
            ("Entferne die unscharfe Person", Remove),
            ("Entferne die Unschärfe", Enhance),
            ("Schärfe das Gesicht", Enhance),
            ("scha\u{308}rfe das Gesicht", Enhance),
            ("scharfe Zähne", Edit),
            ("ein scharfer Blick", Edit),
            ("Stelle das Foto wieder her", Restore),
            ("Stell das Glas hin", Edit),
            ("Entferne den Riss", Restore),
            ("gib der Frau einen Hut", Add),
            ("Entferne das Auto und stelle eine Bank hin", Edit),
            ("Feuerwehr beim Löschen", Edit),
            ("Lösche das Auto und füg einen Baum hinzu", Edit),
            ("Entferne das Auto. Setz einen Baum hin!", Edit),
            ("Entferne das Auto und stell dort eine Bank hin", Edit),
            ("Entferne das Auto und stelle die Wand wieder her", Remove),
            ("Entferne den Mann und die Frau", Remove),
            ("Entferne das Rauschen und füge mehr Details hinzu", Enhance),
            ("ohne den Text, mit Logo", Edit),
            ("ohne das Auto, aber mit Baum", Edit),
            ("ohne den Mann mit dem Hut", Remove),
            ("ohne die Frau mit rotem Kleid", Remove),
            ("Entferne das Auto und stelle Blumen auf den Tisch", Edit),
            ("Entferne das Auto, leg eine Decke hin", Edit),
            ("Entferne die Frau, die zur Kamera hin schaut", Remove),
            ("Entferne den Mann und ergänze den Hintergrund", Remove),
            ("Entferne die Kratzer und füge mehr Details hinzu", Restore),
            ("Elimina al hombre, incluye la sombra", Remove),
            ("Nimm das Auto nicht raus", Edit),
            ("Entferne das Auto nicht", Edit),
            ("Bitte keine Personen entfernen", Edit),
            ("Lass nichts verschwinden", Edit),
            ("Entferne alles, was nicht passt", Remove),
            ("Entferne alles was nicht passt", Remove),
            ("Entferne alles was hier nicht hingehört", Remove),
            ("Entferne die nicht benötigten Personen", Remove),
            ("Entferne den Mann der nicht lächelt", Remove),
            ("Entferne das Auto aber nicht den Baum", Remove),
            ("Kannst du nicht einfach das Auto entfernen?", Remove),
            ("Bitte das Auto nicht aus dem Bild entfernen", Edit),
            ("Bitte entferne nicht das Auto", Edit),
            ("Verbessere das Gesicht aber nicht die Haare", Enhance),
            ("Hol das Beste aus dem Foto raus", Edit),
            ("Entferne nicht nur das Auto, sondern auch den Mann", Remove),
            ("Retuschiere die Kratzer weg", Restore),
            ("Nimm das Rauschen raus", Enhance),
            ("Hol den Mann da raus", Remove),
            ("lass die Zunge raus", Edit),
            ("Mach den Weg weg, bitte!", Remove),
            ("Stelle ein altes Foto wieder her", Restore),
        ]);
    }

    #[test]
    fn spanish_prompts_have_their_modes() {
        assert_modes(&[
            ("Elimina el coche", Remove),
            ("por favor, quita a la gente del fondo", Remove),
            ("Quítalo", Remove),
            ("quiero borrar este cable", Remove),
            ("Quite el coche", Remove),
            ("haz desaparecer el coche", Remove),
            ("Elimina los arañazos", Restore),
            ("quita el ruido", Enhance),
            ("Restaura la foto", Restore),
            ("repara esta foto antigua", Restore),
            ("Mejora la cara", Enhance),
            ("más detalles", Enhance),
            ("Añade un sombrero", Add),
            ("agrega una flor", Add),
            ("Quita el coche y pon una flor", Edit),
            ("elimina la taza y reemplázala por una flor", Edit),
            ("Reemplaza el coche por un árbol", Edit),
            ("un coche rojo", Edit),
            ("apaga la luz", Edit),
            ("no quites el coche", Edit),
            ("¿Puedes quitar el coche?", Remove),
            ("¡Quítalos!", Remove),
            ("Quite a la mujer", Remove),
            ("Quiero que quites el coche", Remove),
            ("Retira la señal", Remove),
            ("Elimina las grietas", Restore),
            ("enfoca la cara", Enhance),
            ("más nitidez", Enhance),
            ("ponga una flor", Add),
            ("quita el coche y en su lugar una flor", Edit),
            ("quita la taza y cámbiala por una flor", Edit),
            ("quitar el coche y poner un árbol", Edit),
            ("¿Puedes quitar el coche? Pon un árbol", Edit),
            ("Elimina al hombre y luego añade un perro", Edit),
            ("quita el coche y la moto", Remove),
            ("haz los ojos más nítidos", Enhance),
        ]);
    }

    #[test]
    fn french_prompts_have_their_modes() {
        assert_modes(&[
            ("Enlève la voiture", Remove),
            ("Supprimez l’homme à l’arrière-plan, s’il vous plaît", Remove),
            ("je voudrais effacer ce câble", Remove),
            ("Enlève-le", Remove),
            ("retire la voiture", Remove),
            ("Fais disparaître la voiture", Remove),
            ("enleve les gens", Remove),
            ("Enlève les rayures", Restore),
            ("Enlève le bruit", Enhance),
            ("Restaurez cette photo", Restore),
            ("répare la photo", Restore),
            ("Améliore le visage", Enhance),
            ("ajoute plus de détails", Enhance),
            ("Ajoute un chapeau", Add),
            ("Supprime la voiture et mets une fleur à la place", Edit),
            ("enlève la tasse et remplace-la par une fleur", Edit),
            ("Remplace la voiture par un arbre", Edit),
            ("une voiture rouge", Edit),
            ("enlève le pull à rayures", Remove),
            ("enlève le grain de beauté", Remove),
            ("retire l’homme", Remove),
            ("Retire cette voiture", Remove),
            ("J’aimerais enlever l’homme", Remove),
            ("« enlève la voiture »", Remove),
            ("gomme le câble", Remove),
            ("il enlève son chapeau", Edit),
            ("Enlève les pliures", Restore),
            ("rends-le plus net", Enhance),
            ("rends le visage plus net", Enhance),
            ("rajoute un chapeau", Add),
            ("enlève la tasse et rajoute une fleur", Edit),
            ("enlever la voiture et ajouter un arbre", Edit),
            ("enlève la voiture, ajoute un arbre", Edit),
            ("Enlève l’homme et la femme", Remove),
            ("Enlève la table et les chaises de la place", Remove),
            ("rends les yeux plus nets", Enhance),
            ("rends le texte plus net", Enhance),
            ("n’enlève pas la voiture", Edit),
        ]);
    }

    #[test]
    fn portuguese_prompts_have_their_modes() {
        assert_modes(&[
            ("Remova o carro", Remove),
            ("Por favor, apague as pessoas ao fundo", Remove),
            ("tire o carro", Remove),
            ("Tire as pessoas", Remove),
            ("você pode eliminar este cabo?", Remove),
            ("remova-o", Remove),
            ("Remova os arranhões", Restore),
            ("remova o ruído", Enhance),
            ("Restaure a foto", Restore),
            ("conserte esta foto", Restore),
            ("Melhore o rosto", Enhance),
            ("mais detalhes", Enhance),
            ("Adicione um chapéu", Add),
            ("coloque uma flor", Add),
            ("Remova o carro e coloque uma flor", Edit),
            ("elimine o copo e substitua por uma flor", Edit),
            ("Remove o carro e coloca uma flor no lugar", Edit),
            ("Substitua o carro por uma árvore", Edit),
            ("um carro vermelho", Edit),
            ("Eu quero remover o carro", Remove),
            ("apaga o carro", Remove),
            ("retirar a placa", Remove),
            ("faça sumir o poste", Remove),
            ("apague a luz", Edit),
            ("Remova as rachaduras", Restore),
            ("mais nitidez", Enhance),
            ("bota uma flor", Add),
            ("remova o copo e bota uma flor", Edit),
            ("tirar a camisa e colocar um terno", Edit),
            ("Remova o homem e depois coloque um cachorro", Edit),
            ("remova o barco e o bote", Remove),
            ("remova o copo e bote flores", Edit),
            ("bote um chapéu", Add),
            ("Pode apagar a luz, por favor?", Edit),
            ("apaga as velas", Edit),
            ("apague a luz do poste", Remove),
            ("apague a luz do quarto", Edit),
            ("apague o poste de luz", Remove),
            ("mais resolução", Enhance),
            ("não remova o carro", Edit),
        ]);
    }

    #[test]
    fn japanese_prompts_have_their_modes() {
        assert_modes(&[
            ("車を消して", Remove),
            ("車を消してください。", Remove),
            ("背景の人を削除", Remove),
            ("電線を取り除いてほしい", Remove),
            ("この人を除去する", Remove),
            ("傷を消して", Restore),
            ("ノイズを除去して", Enhance),
            ("古い写真を修復してください", Restore),
            ("写真を復元", Restore),
            ("顔を鮮明にして", Enhance),
            ("高画質化", Enhance),
            ("帽子を追加して", Add),
            ("花を描いてください", Add),
            ("車を消して花を置いて", Add),
            ("車を消して、代わりに花にして", Edit),
            ("車を木に置き換えて", Edit),
            ("赤い車", Edit),
            ("消火器", Edit),
            ("削除ボタン", Edit),
            ("車の削除をお願いします", Remove),
            ("電線をなくして", Remove),
            ("車を消したい", Remove),
            ("量を少なくして", Edit),
            ("ノイズ除去して", Enhance),
            ("傷消して", Restore),
            ("高解像度化して", Enhance),
            ("帽子をかぶせて", Add),
            ("部屋を片付けて", Edit),
            ("車を消して木に変えて", Edit),
            ("電気を消して暗くした部屋", Edit),
            ("車を消したいです", Remove),
            ("車を消してほしいのですが", Remove),
            ("車を消していただけませんか？", Remove),
            ("車を消さないでほしいです", Edit),
            ("机に置いてあるカップを消して", Remove),
            ("写真のボケを除去して", Enhance),
            ("赤みをなくして", Edit),
            ("しみをなくして", Remove),
            ("景色を邪魔する電線を消して", Remove),
            ("赤みを帯びた人を消して", Remove),
        ]);
    }

    #[test]
    fn chinese_prompts_have_their_modes() {
        assert_modes(&[
            ("去掉这辆车", Remove),
            ("请删除背景里的人。", Remove),
            ("把这辆车去掉", Remove),
            ("将路人移除", Remove),
            ("帮我擦除电线", Remove),
            ("这辆车去掉", Remove),
            ("去掉划痕", Restore),
            ("去除噪点", Enhance),
            ("修复这张老照片", Restore),
            ("把照片修复一下", Restore),
            ("增强面部", Enhance),
            ("让它更清晰", Enhance),
            ("增加细节", Enhance),
            ("添加一顶帽子", Add),
            ("加一朵花", Add),
            ("去掉这辆车，换成一朵花", Edit),
            ("把车去掉并加上一棵树", Edit),
            ("把车换成树", Edit),
            ("一辆红色的车", Edit),
            ("加拿大国旗", Edit),
            ("能不能帮我去掉这个人", Remove),
            ("把水印P掉", Remove),
            ("消掉电线", Remove),
            ("去掉墙上的裂痕", Restore),
            ("提高分辨率", Enhance),
            ("清晰一点", Enhance),
            ("给她戴上帽子", Edit),
            ("加点云", Add),
            ("把车去掉，放个花盆", Edit),
            ("一个正在擦除黑板的人", Edit),
            ("改成红色，不要去掉", Edit),
            ("去掉模糊的人", Remove),
            ("去掉帽子，加朵花", Edit),
            ("把帽子去掉，戴上眼镜", Edit),
            ("加一朵花，把车去掉", Edit),
            ("把后来加上的字去掉", Remove),
            ("去掉加油站", Remove),
            ("去除噪点，增加细节", Enhance),
            ("把路人PS掉", Remove),
            ("你能去掉路人吗", Remove),
            ("请问可不可以去掉水印", Remove),
            ("路人去掉吧", Remove),
            ("请别把人去掉", Edit),
            ("去掉别人", Remove),
            ("请分别把左右两个人去掉", Remove),
            ("去掉“请勿吸烟”的牌子", Remove),
            ("去掉新加入的人", Remove),
            ("去掉划痕，增加细节", Restore),
            ("能量饮料", Edit),
        ]);
    }

    #[test]
    fn english_prompts_are_not_taken_for_others() {
        assert_modes(&[
            ("remove a cup and put a flower there", Edit),
            ("male face", Edit),
            ("tire on the road", Edit),
            ("quite dark sky", Edit),
            ("quite a dark sky", Edit),
            ("a hoop plus net", Edit),
            ("remove a cup", Remove),
            ("will there be rain", Edit),
            ("remove the man's hat", Remove),
            ("sin city sign", Edit),
            ("sans serif letters", Edit),
            ("mets logo", Edit),
            ("retire early", Edit),
            ("die cast car", Edit),
            ("remove the weg sign", Remove),
            ("rends the veil", Edit),
            ("quite al fresco", Edit),
            ("quite a la carte", Edit),
            ("bote on the lake", Edit),
            ("don't remove the car", Edit),
        ]);
    }
}
