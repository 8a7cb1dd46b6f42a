//! What a source file names by path. It is read as tokens, so comments, strings and macros hide and
//! add nothing. What is compiled for tests only is left out.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The segments of a path to a module or to something in it.
pub type Path = Vec<String>;

/// A path that stands in a module, as it is written.
pub struct Named {
    pub within: Path,
    pub path: Path,
    /// The name that an import gives it there.
    pub name: Option<String>,
}

/// What one file says.
#[derive(Default)]
pub struct Source {
    pub named: Vec<Named>,
    /// Modules that are compiled for tests only.
    pub for_tests: Vec<Path>,
}

impl Source {
    /// Reads the text of a module's file.
    pub fn read(module: &[String], text: &str) -> Source {
        let mut source = Source::default();
        source.walk(module, text.parse::<TokenStream>().expect("the file is Rust").into_iter().collect());
        source
    }

    fn walk(&mut self, within: &[String], tokens: Vec<TokenTree>) {
        let mut rest = &tokens[..];
        while let Some(token) = rest.first() {
            rest = match (word(rest).as_deref(), rest) {
                _ if is_for_tests(rest) => self.skip(within, &rest[2..]),
                (Some("mod"), [_, TokenTree::Ident(name), TokenTree::Group(body), after @ ..]) => {
                    self.walk(&joined(within, &name.to_string()), body.stream().into_iter().collect());
                    after
                }
                // Not `impl Trait + use<>`.
                (Some("use"), [_, next, ..]) if !is_punct(next, '<') => {
                    let end = rest.iter().position(|token| is_punct(token, ';')).unwrap_or(rest.len());
                    self.import(within, Path::new(), &rest[1..end]);
                    &rest[end..]
                }
                (Some("crate" | "super" | "self"), [_, after @ ..]) if is_separator(after) => self.path(within, rest),
                (_, [_, after @ ..]) => {
                    if let TokenTree::Group(group) = token {
                        self.walk(within, group.stream().into_iter().collect());
                    }
                    after
                }
                (_, []) => return,
            };
        }
    }

    /// Skips an item that is compiled for tests only.
    fn skip<'a>(&mut self, within: &[String], item: &'a [TokenTree]) -> &'a [TokenTree] {
        let ends = |token: &TokenTree| match token {
            TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
            token => is_punct(token, ';') || is_punct(token, ','),
        };
        let end = item.iter().position(ends).map_or(item.len(), |at| at + 1);
        let named = item[..end].iter().skip_while(|token| !matches!(token, TokenTree::Ident(word) if word == "mod"));
        if let Some(TokenTree::Ident(name)) = named.into_iter().nth(1) {
            self.for_tests.push(joined(within, &name.to_string()));
        }
        &item[end..]
    }

    /// Takes a path in an expression or a type.
    fn path<'a>(&mut self, within: &[String], tokens: &'a [TokenTree]) -> &'a [TokenTree] {
        let (mut path, mut rest) = (Path::new(), tokens);
        while let Some(segment) = word(rest) {
            path.push(segment);
            rest = &rest[1..];
            if !is_separator(rest) {
                break;
            }
            rest = &rest[2..];
        }
        self.named.push(Named { within: within.to_vec(), path, name: None });
        rest
    }

    /// Takes the tree of a `use`.
    fn import(&mut self, within: &[String], mut path: Path, tree: &[TokenTree]) {
        let mut rest = tree;
        loop {
            match rest {
                [TokenTree::Group(group), ..] => {
                    let branches: Vec<TokenTree> = group.stream().into_iter().collect();
                    for branch in branches.split(|token| is_punct(token, ',')) {
                        self.import(within, path.clone(), branch);
                    }
                    return;
                }
                [TokenTree::Ident(segment), after @ ..] => {
                    path.push(segment.to_string());
                    rest = after;
                }
                [star, ..] if is_punct(star, '*') => {
                    path.push("*".into());
                    rest = &[];
                }
                _ => return,
            }
            if is_separator(rest) {
                rest = &rest[2..];
                continue;
            }
            if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
                path.pop();
            }
            let renamed = word(rest).is_some_and(|word| word == "as");
            let name = if renamed { word(&rest[1..]) } else { path.last().cloned() };
            self.named.push(Named { within: within.to_vec(), path, name });
            return;
        }
    }
}

/// The path with a segment more.
pub fn joined(path: &[String], segment: &str) -> Path {
    path.iter().cloned().chain([segment.to_string()]).collect()
}

/// The first token, if it is a word.
fn word(tokens: &[TokenTree]) -> Option<String> {
    match tokens.first() {
        Some(TokenTree::Ident(word)) => Some(word.to_string()),
        _ => None,
    }
}

fn is_punct(token: &TokenTree, sign: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == sign)
}

fn is_separator(tokens: &[TokenTree]) -> bool {
    matches!(tokens, [first, second, ..] if is_punct(first, ':') && is_punct(second, ':'))
}

/// Whether an attribute follows that keeps the next item for tests.
fn is_for_tests(tokens: &[TokenTree]) -> bool {
    let [sign, TokenTree::Group(attribute), ..] = tokens else { return false };
    let words = attribute.to_string().replace(' ', "");
    is_punct(sign, '#') && words.starts_with("[cfg(") && words.contains("test") && !words.contains("not(")
}
