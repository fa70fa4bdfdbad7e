//! Japanese and Chinese, which have no spaces between words.

use retouch_catalog::FixMode;

use super::vocabulary::{CHINESE, JAPANESE};
use super::words::LISTS;
use crate::mode::{Act, Object, Request, decide};
use crate::text::CLAUSE_ENDS;

/// Words that join a second Chinese request to the first.
const CHINESE_JOINTS: [&str; 7] = ["并且", "并", "然后", "接着", "同时", "再", "而且"];

/// Numbers, and the words between them and a new thing: "放棵树". A quotation is written.
const CHINESE_MEASURES: [char; 29] = [
    '一', '两', '几', '些', '点', '个', '只', '朵', '条', '棵', '顶', '张', '辆', '座', '把', '件',
    '头', '匹', '本', '杯', '瓶', '盏', '束', '块', '根', '“', '"', '「', '《',
];

/// Returns the mode that a prompt means; `None` if no verb is recognized. `plain` is the folded text.
pub(super) fn mode_of(plain: &str) -> Option<FixMode> {
    japanese(plain).or_else(|| chinese(plain))
}

fn has(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| text.contains(word))
}

fn begins(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| text.starts_with(word))
}

/// Returns the text between other characters than letters and digits.
fn trimmed(text: &str) -> &str {
    text.trim_matches(|c: char| !c.is_alphanumeric())
}

fn japanese(plain: &str) -> Option<FixMode> {
    let mut requests = vec![];
    // The things before the next verb: "傷、汚れを消して" has two.
    let mut before = String::new();
    let mut names_a_thing = false;
    for clause in plain.split(CLAUSE_ENDS) {
        let earlier = requests.len();
        let mut clause = trimmed(clause);
        while let Some(rest) = JAPANESE.courtesy.iter().find_map(|word| clause.strip_suffix(word)) {
            clause = trimmed(rest);
        }
        for part in split_after_verbs(clause).into_iter().filter(|part| !part.is_empty()) {
            match japanese_request(&format!("{before}{part}")) {
                Some(request) => requests.push(request),
                // Another request, such as "背景を自然にして".
                None if part.ends_with('て') => {}
                None => {
                    before = format!("{before}{part}と");
                    continue;
                }
            }
            before.clear();
        }
        // A clause that ends without a verb, after one, names a thing: "電気を消して暗くした部屋".
        names_a_thing |= if requests.len() > earlier {
            !before.is_empty()
        } else {
            is_removal(requests.last()) && describes_a_thing(clause)
        };
    }
    let asks = (!names_a_thing).then(|| decide(&requests, has(plain, JAPANESE.instead)));
    asks.flatten().or_else(|| has(plain, JAPANESE.detail).then_some(FixMode::Enhance))
}

fn is_removal(request: Option<&Request>) -> bool {
    request.is_some_and(|Request { act, object }| *act == Act::Remove && *object == Object::Thing)
}

/// Recognizes "赤いドレスの女性" after a removal, a new thing and how it looks, and "青空", a scene that takes its
/// place. Neither "左の人" nor "古い写真" is new, and "背景は自然に" names no thing.
fn describes_a_thing(clause: &str) -> bool {
    const SCENES: [&str; 8] = ["青空", "夕焼け", "星空", "海", "ビーチ", "砂浜", "草原", "花畑"];
    const NOT_NEW: [&str; 12] = [
        "この",
        "その",
        "左",
        "右",
        "後ろ",
        "奥",
        "手前",
        "中央",
        "真ん中",
        "背景",
        "写真",
        "画像",
    ];
    let is_hiragana = |c: char| ('\u{3040}'..='\u{309f}').contains(&c);
    let is_scene = || SCENES.iter().any(|scene| clause.ends_with(scene));
    let is_described = || {
        clause.contains(['い', 'な', 'の', 'た'])
            && !clause.contains('は')
            && !clause.ends_with(is_hiragana)
    };
    (is_scene() || is_described()) && !has(clause, &NOT_NEW) && !has(clause, JAPANESE.natural)
}

/// Splits a clause after each verb that another phrase follows: "車を消して|花を置いて" and "車を消して|もっときれいにして", but not
/// "置いてある".
fn split_after_verbs(clause: &str) -> Vec<&str> {
    let is_hiragana = |c: char| ('\u{3040}'..='\u{309f}').contains(&c);
    let ends = clause.char_indices().filter(|(at, c)| {
        let (part, rest) = clause.split_at(at + c.len_utf8());
        *c == 'て'
            && (rest.starts_with(|next| !is_hiragana(next)) || begins(rest, JAPANESE.joints))
            && LISTS.iter().any(|(_, list)| list(&JAPANESE).iter().any(|verb| part.ends_with(verb)))
    });
    let mut parts = vec![];
    let mut start = 0;
    for (at, c) in ends {
        parts.push(&clause[start..at + c.len_utf8()]);
        start = at + c.len_utf8();
    }
    parts.push(&clause[start..]);
    parts
}

fn japanese_request(part: &str) -> Option<Request> {
    // "何も追加しないようにして" asks for nothing.
    if part.ends_with("ないようにして") {
        return None;
    }
    let (act, object) = LISTS.iter().find_map(|(act, list)| {
        let objects = list(&JAPANESE).iter().filter_map(|verb| part.strip_suffix(verb));
        Some((*act, objects.min_by_key(|object| object.len())?))
    })?;
    let things = object.trim_end_matches(['を', 'の', 'も', 'は']);
    // "傷や汚れ" is two things, and "傷を負った人" is one.
    let is_about = |nouns: &[&str]| {
        things.split(['や', 'と', '・']).any(|thing| nouns.iter().any(|noun| thing.ends_with(noun)))
    };
    // "加工はいらない" asks for nothing.
    let is_unneeded =
        ["いらない", "要らない", "いりません"].iter().any(|verb| part.ends_with(verb));
    if is_unneeded && is_about(&["変更", "加工", "修正", "編集", "説明"]) {
        return None;
    }
    // Colors are changed and lights are turned off.
    let is_change = is_about(&["赤み", "青み", "黄ばみ", "色", "電気", "明かり", "灯り", "あかり"]);
    let object = match act {
        Act::Remove if is_about(JAPANESE.damage) => Object::Damage,
        Act::Remove if is_about(JAPANESE.defects) => Object::Defect,
        Act::Remove if is_about(JAPANESE.flaws) => Object::Flaw,
        Act::Remove => Object::Thing,
        Act::Add if is_about(&["色", "カラー", "コントラスト"]) => Object::Color,
        _ if has(part, JAPANESE.detail) => Object::Detail,
        // "自然の風景にして" wants a new thing.
        Act::Change if JAPANESE.natural.iter().any(|look| object.ends_with(look)) => {
            Object::NaturalLook
        }
        _ => Object::Thing,
    };
    Some(Request { act: if act == Act::Remove && is_change { Act::Change } else { act }, object })
}

fn chinese(plain: &str) -> Option<FixMode> {
    let requests: Vec<_> = plain
        .split(CLAUSE_ENDS)
        .flat_map(split_before_joints)
        .map(polite)
        .flat_map(chinese_requests)
        .collect();
    decide(&requests, has(plain, CHINESE.instead))
        .or_else(|| asks_for_detail(plain).then_some(FixMode::Enhance))
}

/// Returns a clause without courtesies and joining words at both ends.
fn polite(clause: &str) -> &str {
    let mut text = trimmed(clause);
    let is_of = |rest: &str| rest.starts_with('的');
    while let Some(rest) = CHINESE.courtesy.iter().chain(&CHINESE_JOINTS).find_map(|word| {
        let after = text.strip_prefix(word).filter(|rest| !is_of(rest));
        // "写“你好”" writes it.
        after.or_else(|| text.strip_suffix(word).filter(|_| !begins_with_an_addition(text)))
    }) {
        text = trimmed(rest);
    }
    text
}

/// Splits a clause before each joining word that a verb follows.
fn split_before_joints(clause: &str) -> Vec<&str> {
    let joint = CHINESE_JOINTS
        .iter()
        .flat_map(|joint| clause.match_indices(joint))
        .filter(|(at, joint)| *at > 0 && begins_with_a_verb(polite(&clause[at + joint.len()..])))
        .map(|(at, _)| at)
        .min();
    match joint {
        Some(at) => [vec![&clause[..at]], split_before_joints(&clause[at..])].concat(),
        None => vec![clause],
    }
}

fn begins_with_a_verb(text: &str) -> bool {
    text.starts_with(['把', '将', '在', '给'])
        || begins_with_an_addition(text)
        || LISTS.iter().any(|(_, list)| list(&CHINESE).iter().any(|verb| text.starts_with(verb)))
}

/// Recognizes "种一棵树" and "写“你好”", but neither "写字的人" nor "种子".
fn begins_with_an_addition(text: &str) -> bool {
    text.strip_prefix(['加', '放', '画', '种', '写'])
        .is_some_and(|thing| thing.starts_with(CHINESE_MEASURES))
}

/// Recognizes what becomes another thing: "头发变红色" and "背景换白底", but neither "背景不变" nor "更换的招牌".
fn becomes(text: &str) -> bool {
    ['变', '换'].iter().any(|verb| {
        text.split_once(*verb).is_some_and(|(before, after)| {
            let is_new = after.starts_with(['成', '为']) || after.starts_with(CHINESE_MEASURES);
            let is_otherwise = before.contains(['的', '不', '没', '无'])
                || before.ends_with(['改', '更', '转', '交', '切']);
            // "变电站" and "换气扇" are things.
            let is_noun = after.starts_with(['电', '压', '气', '形', '化', '速']);
            !is_otherwise && !is_noun && !after.is_empty() && (is_new || !after.contains('的'))
        })
    })
}

/// Returns what a clause asks for. After a removal, it may add a thing: "去掉帽子加朵花".
fn chinese_requests(clause: &str) -> Vec<Request> {
    if let Some(thing) = unwanted(clause) {
        return vec![Request { act: Act::Remove, object: removed(thing) }];
    }
    if is_negated(clause) {
        return vec![];
    }
    let moves = clause.starts_with(['把', '将']);
    let verb = LISTS.iter().find_map(|(act, list)| {
        list(&CHINESE)
            .iter()
            .find(|verb| {
                clause.starts_with(**verb)
                    || clause.ends_with(**verb)
                    // "去掉好吗"
                    || clause.strip_suffix('好').is_some_and(|rest| rest.ends_with(**verb))
                    || moves && clause.contains(**verb)
            })
            .map(|verb| (*act, *verb))
    });
    // "在这里加一棵树" and "给她戴上帽子"; "他加上的字" only names a thing.
    let adds = |part: &str| {
        CHINESE.add.iter().any(|verb| {
            part.split_once(verb)
                .is_some_and(|(before, after)| !before.contains('的') && !after.contains('的'))
        })
    };
    let is_placing = clause.starts_with(['在', '给']) && adds(clause);
    let is_adding = is_placing || begins_with_an_addition(clause);
    let other = || {
        let act = if is_adding { Act::Add } else { Act::Change };
        (is_adding || becomes(clause)).then_some((act, ""))
    };
    let Some((act, verb)) = verb.or_else(other) else { return vec![] };
    // A word before 的 only describes: "模糊的人".
    let thing = clause.rsplit('的').next().unwrap_or(clause);
    let added = if asks_for_detail(clause) { Object::Detail } else { Object::Thing };
    let object = match act {
        Act::Remove => removed(thing),
        Act::Add
            if ["颜色", "色彩", "对比度", "亮度"].iter().any(|color| clause.ends_with(color)) =>
        {
            Object::Color
        }
        Act::Change if CHINESE.natural.iter().any(|look| clause.ends_with(look)) => {
            Object::NaturalLook
        }
        _ => added,
    };
    // "修复模糊" is an enhancement.
    let is_blurred = has(thing, CHINESE.defects) && !has(thing, CHINESE.damage);
    let act = if act == Act::Restore && is_blurred { Act::Enhance } else { act };
    let mut requests = vec![Request { act, object }];
    let after = clause.split_once(verb).map_or("", |(_, after)| after);
    // The removed thing comes before the verb, or between the verb and the rest: "去掉变色的镜片" is one removal.
    let follows = !clause.starts_with(verb) || !after.starts_with(['变', '换']);
    if act == Act::Remove && adds(after) {
        requests.push(Request { act: Act::Add, object: added });
    } else if act == Act::Remove && follows && becomes(after) {
        requests.push(Request { act: Act::Change, object: added });
    }
    requests
}

/// Returns what is removed with a thing.
fn removed(thing: &str) -> Object {
    if has(thing, CHINESE.damage) {
        Object::Damage
    } else if has(thing, CHINESE.defects) && !is_blurred_thing(thing) {
        Object::Defect
    } else if has(thing, CHINESE.flaws) {
        Object::Flaw
    } else {
        Object::Thing
    }
}

/// Returns the thing of "不要这个人", "我不想要那些电线" and "让这个人消失". "不要这样" and "不要这个颜色" remove nothing.
fn unwanted(clause: &str) -> Option<&str> {
    let vanishes = || clause.strip_suffix("消失")?.strip_prefix(['让', '使']);
    let is_this = |thing: &&str| {
        thing.strip_prefix(['这', '那']).is_some_and(|thing| thing.starts_with(CHINESE_MEASURES))
    };
    let clause_without_me = clause.trim_start_matches('我');
    let denied = || {
        let thing = ["不要", "不想要"].iter().find_map(|not| clause_without_me.strip_prefix(not));
        thing.filter(is_this)
    };
    vanishes().or_else(denied).filter(|thing| !has(thing, &["颜色", "效果", "不", "别"]))
}

/// Recognizes "(去掉)模糊人物", which is a thing, but neither "模糊" alone nor "模糊和噪点" nor "把模糊去掉".
fn is_blurred_thing(thing: &str) -> bool {
    thing.split_once("模糊").is_some_and(|(_, rest)| {
        let is_other =
            rest.is_empty() || rest.starts_with(['和', '与', '及', '感', '问', '都', '全']);
        !is_other && !CHINESE.remove.iter().any(|verb| rest.starts_with(verb))
    })
}

/// Recognizes "更清晰", but not "更清晰的城堡".
fn asks_for_detail(text: &str) -> bool {
    CHINESE.detail.iter().any(|words| {
        text.match_indices(words).any(|(at, words)| !text[at + words.len()..].starts_with('的'))
    })
}

/// Recognizes "不要去掉", "先别把人去掉" and "勿", but neither "别人" nor "不要的东西".
fn is_negated(clause: &str) -> bool {
    let clause = clause.trim_start_matches(['先', '也']);
    let denies = |word: &&str| {
        let follows = clause.strip_prefix(*word);
        follows.is_some_and(|rest| !rest.starts_with(['人', '的', '墅', '针']))
            || CHINESE.remove.iter().any(|verb| clause.contains(&format!("{word}{verb}")))
    };
    ["不要", "不用", "别", "勿"].iter().any(denies)
}
