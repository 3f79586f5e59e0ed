//! Contrast of the colours of the style (WCAG 2.1 §1.4.3 and §1.4.11), computed for both colour schemes.

use std::collections::HashMap;

use super::STYLE;

/// Minimum contrast of text.
const TEXT: f64 = 4.5;
/// Minimum contrast of lines and fields.
const GRAPHICS: f64 = 3.0;

/// Pairs of foreground and background that occur on the page, with their minimum contrast.
const PAIRS: [(&str, &str, f64); 25] = [
    ("text", "page", TEXT),
    ("text", "panel", TEXT),
    ("text", "alarm", TEXT),
    ("muted", "page", TEXT),
    ("muted", "panel", TEXT),
    ("link", "page", TEXT),
    ("link", "panel", TEXT),
    ("good", "page", TEXT),
    ("good", "panel", TEXT),
    ("warn", "page", TEXT),
    ("warn", "panel", TEXT),
    ("bad", "page", TEXT),
    ("bad", "panel", TEXT),
    ("bad", "alarm", TEXT),
    ("edge", "page", GRAPHICS),
    ("edge", "panel", GRAPHICS),
    ("draw", "page", GRAPHICS),
    ("draw", "panel", GRAPHICS),
    ("broken", "page", GRAPHICS),
    ("broken", "panel", GRAPHICS),
    ("bad", "ribbon", GRAPHICS),
    ("draw", "line", 2.0),
    ("broken", "line", 2.0),
    ("broken", "ribbon", 2.0),
    // Decoration: the numbers beside the ribbons say the same.
    ("ribbon", "page", 1.4),
];

/// Returns the variables of the first rule after a text.
fn colours(style: &str) -> HashMap<&str, [f64; 3]> {
    let rule = style.split('}').next().expect("a rule");
    let variable = |line: &'static str| {
        let (name, value) = line.trim().strip_prefix("--")?.strip_suffix(';')?.split_once(": #")?;
        let part = |at: usize| u8::from_str_radix(&value[at..at + 2], 16).expect("a colour");
        Some((name, [0, 2, 4].map(|at| f64::from(part(at)) / 255.0)))
    };
    let rule: &'static str = Box::leak(rule.to_owned().into_boxed_str());
    rule.lines().filter_map(variable).collect()
}

/// Relative luminance of a colour.
fn luminance(colour: [f64; 3]) -> f64 {
    let linear = |part: f64| if part <= 0.040_45 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) };
    let [red, green, blue] = colour.map(linear);
    0.2126 * red + 0.7152 * green + 0.0722 * blue
}

fn contrast(one: [f64; 3], other: [f64; 3]) -> f64 {
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

#[test]
fn texts_can_be_read_in_both_colour_schemes() {
    assert!((contrast([0.0; 3], [1.0; 3]) - 21.0).abs() < 1e-9);
    let (light, dark) = STYLE.split_once("@media (prefers-color-scheme: dark)").expect("a dark scheme");
    let mut wrong = Vec::new();
    for (scheme, style) in [("light", light), ("dark", dark)] {
        let colours = colours(style);
        assert_eq!(colours.len(), 14, "{scheme}: {:?}", colours.keys());
        for (front, back, least) in PAIRS {
            let found = contrast(colours[front], colours[back]);
            if found < least {
                wrong.push(format!("{scheme}: {front} on {back} has {found:.2}, needs {least}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_colour_is_a_variable() {
    let (_, rules) = STYLE.split_once("* { box-sizing").expect("rules after the variables");
    let ids = ["#state", "#figures", "#lost"].map(|id| rules.matches(id).count());
    assert_eq!(rules.matches('#').count(), ids.iter().sum::<usize>());
    for word in ["rgb(", "hsl(", "white", "black"] {
        assert!(!rules.replace("white-space", "").contains(word), "{word}");
    }
}
