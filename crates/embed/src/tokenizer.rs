//! The part of tokenizer.json that static models use: BERT's normalizer, its pre-tokenizer, and WordPiece.

use std::collections::HashMap;

use serde_json::Value;
use unicode_normalization::UnicodeNormalization;
use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

use crate::EmbedError;

const FILE: &str = "tokenizer.json";

/// Splits text into the tokens of a model.
pub(crate) struct Tokenizer {
    normalizer: Vec<Normalizer>,
    pre_tokenizer: PreTokenizer,
    vocabulary: HashMap<String, usize>,
    /// The token for unknown words, which has no meaning.
    unknown: Option<usize>,
    prefix: String,
    longest: usize,
    /// The median length of a token, in characters.
    median: usize,
}

enum Normalizer {
    CleanText,
    ChineseCharacters,
    StripAccents,
    Lowercase,
    Nfc,
    Nfd,
    Nfkc,
    Nfkd,
}

enum PreTokenizer {
    /// Splits at white space, and around punctuation.
    Bert,
    /// Splits at white space.
    Whitespace,
}

impl Tokenizer {
    pub(crate) fn parse(json: &[u8]) -> Result<Self, EmbedError> {
        let json: Value = serde_json::from_slice(json).map_err(|e| EmbedError::model(FILE, e))?;
        let missing = |what: &str| EmbedError::model(FILE, format!("there is no `{what}`"));
        let model = &json["model"];
        match model["type"].as_str() {
            Some("WordPiece") => {}
            other => return Err(unsupported("model", other)),
        }
        let mut normalizer = Vec::new();
        normalizers(&json["normalizer"], &mut normalizer)?;
        let pre_tokenizer = pre_tokenizer(&json["pre_tokenizer"])?;
        let vocabulary = model["vocab"].as_object().ok_or_else(|| missing("model.vocab"))?;
        let number = |id: &Value| usize::try_from(id.as_u64()?).ok();
        let vocabulary: Option<HashMap<String, usize>> =
            vocabulary.iter().map(|(token, id)| Some((token.clone(), number(id)?))).collect();
        let vocabulary = vocabulary.filter(|v| !v.is_empty()).ok_or_else(|| missing("model.vocab"))?;
        let mut lengths: Vec<usize> = vocabulary.keys().map(|token| token.chars().count()).collect();
        lengths.sort_unstable();
        let middle = lengths.len() / 2;
        let median = if lengths.len() % 2 == 1 {
            lengths[middle]
        } else {
            (lengths[middle - 1] + lengths[middle]) / 2
        };
        let unknown = model["unk_token"].as_str().and_then(|token| vocabulary.get(token)).copied();
        let longest = model["max_input_chars_per_word"].as_u64().unwrap_or(100);
        Ok(Self {
            normalizer,
            pre_tokenizer,
            unknown,
            prefix: model["continuing_subword_prefix"].as_str().unwrap_or("##").to_owned(),
            longest: usize::try_from(longest).unwrap_or(100),
            median,
            vocabulary,
        })
    }

    /// Returns the smallest number of vectors that covers every token.
    pub(crate) fn len(&self) -> usize {
        self.vocabulary.values().max().map_or(0, |last| last + 1)
    }

    /// Returns the known tokens among the first `most` tokens of a text.
    pub(crate) fn encode(&self, text: &str, most: usize) -> Vec<usize> {
        let cut = text.char_indices().nth(most.saturating_mul(self.median)).map_or(text.len(), |(at, _)| at);
        let mut text = text[..cut].to_owned();
        for normalizer in &self.normalizer {
            text = normalizer.apply(&text);
        }
        let mut tokens = Vec::new();
        self.pre_tokenizer.split(&text, &mut |word| {
            if tokens.len() < most {
                self.word(word, &mut tokens);
            }
        });
        tokens.truncate(most);
        tokens.into_iter().flatten().filter(|token| Some(*token) != self.unknown).collect()
    }

    /// Adds the tokens of a word, longest first; a word that isn't made of known tokens is one unknown token.
    fn word(&self, word: &str, tokens: &mut Vec<Option<usize>>) {
        let start = tokens.len();
        let ends: Vec<usize> = word.char_indices().map(|(at, _)| at).skip(1).chain([word.len()]).collect();
        if ends.len() > self.longest {
            return tokens.push(self.unknown);
        }
        let (mut from, mut piece) = (0, String::new());
        while from < word.len() {
            let found = ends.iter().rev().take_while(|end| **end > from).find_map(|end| {
                piece.clear();
                if from > 0 {
                    piece.push_str(&self.prefix);
                }
                piece.push_str(&word[from..*end]);
                self.vocabulary.get(&piece).map(|token| (*token, *end))
            });
            let Some((token, end)) = found else {
                tokens.truncate(start);
                return tokens.push(self.unknown);
            };
            tokens.push(Some(token));
            from = end;
        }
    }
}

fn unsupported(part: &'static str, name: Option<&str>) -> EmbedError {
    match name {
        Some(name) => EmbedError::Unsupported { part, name: name.to_owned() },
        None => EmbedError::model(FILE, format!("there is no `{part}.type`")),
    }
}

fn normalizers(json: &Value, out: &mut Vec<Normalizer>) -> Result<(), EmbedError> {
    if json.is_null() {
        return Ok(());
    }
    match json["type"].as_str() {
        Some("Sequence") => {
            let all = json["normalizers"].as_array().into_iter().flatten();
            return all.into_iter().try_for_each(|one| normalizers(one, out));
        }
        Some("BertNormalizer") => {
            let lowercase = json["lowercase"].as_bool().unwrap_or(true);
            let on = |key: &str, default: bool| json[key].as_bool().unwrap_or(default);
            out.extend(on("clean_text", true).then_some(Normalizer::CleanText));
            out.extend(on("handle_chinese_chars", true).then_some(Normalizer::ChineseCharacters));
            out.extend(on("strip_accents", lowercase).then_some(Normalizer::Nfd));
            out.extend(on("strip_accents", lowercase).then_some(Normalizer::StripAccents));
            out.extend(lowercase.then_some(Normalizer::Lowercase));
        }
        Some("Lowercase") => out.push(Normalizer::Lowercase),
        Some("StripAccents") => out.push(Normalizer::StripAccents),
        Some("NFC") => out.push(Normalizer::Nfc),
        Some("NFD") => out.push(Normalizer::Nfd),
        Some("NFKC") => out.push(Normalizer::Nfkc),
        Some("NFKD") => out.push(Normalizer::Nfkd),
        other => return Err(unsupported("normalizer", other)),
    }
    Ok(())
}

fn pre_tokenizer(json: &Value) -> Result<PreTokenizer, EmbedError> {
    match json["type"].as_str() {
        Some("BertPreTokenizer") => Ok(PreTokenizer::Bert),
        Some("WhitespaceSplit") => Ok(PreTokenizer::Whitespace),
        other => Err(unsupported("pre_tokenizer", other)),
    }
}

impl Normalizer {
    fn apply(&self, text: &str) -> String {
        match self {
            Self::CleanText => {
                let kept = text.chars().filter(|c| !matches!(c, '\0' | '\u{fffd}') && !is_control(*c));
                kept.map(|c| if c.is_whitespace() { ' ' } else { c }).collect()
            }
            Self::ChineseCharacters => {
                let mut out = String::with_capacity(text.len());
                for c in text.chars() {
                    match is_chinese(c) {
                        true => out.extend([' ', c, ' ']),
                        false => out.push(c),
                    }
                }
                out
            }
            Self::StripAccents => {
                text.chars().filter(|c| c.general_category() != GeneralCategory::NonspacingMark).collect()
            }
            Self::Lowercase => text.chars().flat_map(char::to_lowercase).collect(),
            Self::Nfc => text.nfc().collect(),
            Self::Nfd => text.nfd().collect(),
            Self::Nfkc => text.nfkc().collect(),
            Self::Nfkd => text.nfkd().collect(),
        }
    }
}

impl PreTokenizer {
    fn split<'t>(&self, text: &'t str, word: &mut dyn FnMut(&'t str)) {
        for part in text.split_whitespace() {
            match self {
                Self::Whitespace => word(part),
                Self::Bert => {
                    let mut rest = part;
                    while let Some(at) = rest.find(is_punctuation) {
                        let mark = rest[at..].chars().next().map_or(1, char::len_utf8);
                        if at > 0 {
                            word(&rest[..at]);
                        }
                        word(&rest[at..at + mark]);
                        rest = &rest[at + mark..];
                    }
                    if !rest.is_empty() {
                        word(rest);
                    }
                }
            }
        }
    }
}

fn is_control(c: char) -> bool {
    !matches!(c, '\t' | '\n' | '\r') && c.general_category_group() == GeneralCategoryGroup::Other
}

fn is_punctuation(c: char) -> bool {
    c.is_ascii_punctuation() || c.general_category_group() == GeneralCategoryGroup::Punctuation
}

/// Returns whether a character is a CJK ideograph, as BERT counts them.
fn is_chinese(c: char) -> bool {
    matches!(u32::from(c), 0x4e00..=0x9fff | 0x3400..=0x4dbf | 0x20000..=0x2a6df | 0x2a700..=0x2b73f
        | 0x2b740..=0x2b81f | 0x2b920..=0x2ceaf | 0xf900..=0xfaff | 0x2f800..=0x2fa1f)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize)]
    struct Expected {
        text: String,
        tokens: Vec<String>,
    }

    #[test]
    fn finds_the_tokens_that_the_python_package_finds() {
        let tokenizer = Tokenizer::parse(include_bytes!("../fixtures/tiny/tokenizer.json")).unwrap();
        let expected: Vec<Expected> =
            serde_json::from_slice(include_bytes!("../fixtures/expected.json")).unwrap();
        let named = |id: usize| {
            tokenizer
                .vocabulary
                .iter()
                .find(|(_, other)| **other == id)
                .map(|(name, _)| name.clone())
                .unwrap()
        };
        for Expected { text, mut tokens } in expected {
            tokens.retain(|token| token != "[UNK]");
            let found: Vec<String> = tokenizer.encode(&text, 512).into_iter().map(named).collect();
            assert_eq!(found, tokens, "{text:?}");
        }
    }

    #[test]
    fn long_texts_are_cut() {
        let tokenizer = Tokenizer::parse(include_bytes!("../fixtures/tiny/tokenizer.json")).unwrap();
        assert_eq!(tokenizer.encode(&"the ".repeat(1000), 7).len(), 7);
        assert!(tokenizer.encode(&"x".repeat(1_000_000), 512).is_empty());
    }
}
