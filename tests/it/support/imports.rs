//! Which paths a Rust source names, read from its tokens, so that comments and strings do not
//! count, and what stands inside a macro's brackets does.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// All paths in a source, from their first segment on, `use` groups unfolded, leading `crate`,
/// `self` and `super` resolved: what is ours begins with `crate`. `module` is the source's own path
/// without `crate`; modules under `#[cfg(test)]` are left out.
pub(crate) fn paths(source: &str, module: &[&str]) -> Vec<Vec<String>> {
    let tokens: TokenStream = source.parse().expect("a Rust source");
    let module: Vec<String> = module.iter().map(|name| name.to_string()).collect();
    let mut found = vec![];
    walk(&tokens.into_iter().collect::<Vec<_>>(), &module, &mut found);
    found
}

fn walk(tokens: &[TokenTree], module: &[String], found: &mut Vec<Vec<String>>) {
    let mut at = 0;
    while at < tokens.len() {
        if let Some(after) = skip_tests(&tokens[at..]) {
            at += after;
        } else if let Some((name, body)) = inline_module(&tokens[at..]) {
            let inner: Vec<String> = module.iter().cloned().chain([name]).collect();
            walk(&body, &inner, found);
            at += 3;
        } else if ident(&tokens[at]).is_some() {
            at += read_path(&tokens[at..], vec![], module, found);
        } else {
            if let TokenTree::Group(group) = &tokens[at] {
                walk(&group.stream().into_iter().collect::<Vec<_>>(), module, found);
            }
            at += 1;
        }
    }
}

/// Reads one path, or one branch of a `use` tree, behind `prefix`; gives how many tokens it took.
fn read_path(
    tokens: &[TokenTree],
    prefix: Vec<String>,
    module: &[String],
    found: &mut Vec<Vec<String>>,
) -> usize {
    let mut path = prefix;
    let mut at = 0;
    loop {
        match tokens.get(at) {
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                for branch in inner.split(|token| is_punct(token, ',')) {
                    read_path(branch, path.clone(), module, found);
                }
                return at + 1;
            }
            Some(token) if is_punct(token, '*') => {
                found.push(resolve(path, module));
                return at + 1;
            }
            Some(token) if ident(token).is_some() => path.extend(ident(token)),
            // A generic argument, `path::<T>`: the path ends, the argument is read by itself.
            _ => {
                found.push(resolve(path, module));
                return at;
            }
        }
        at += 1;
        if !is_double_colon(&tokens[at..]) {
            found.push(resolve(path, module));
            return at;
        }
        at += 2;
    }
}

fn resolve(path: Vec<String>, module: &[String]) -> Vec<String> {
    let supers = path.iter().take_while(|name| *name == "super").count();
    let (base, rest) = match path.first().map(String::as_str) {
        Some("super") => (&module[..module.len().saturating_sub(supers)], &path[supers..]),
        // `self::super::x` is written by nobody, so it is not read.
        Some("self") => (module, &path[1..]),
        _ => return path,
    };
    ["crate".to_owned()]
        .into_iter()
        .chain(base.iter().cloned())
        .chain(rest.iter().cloned())
        .collect()
}

/// How many tokens `#[cfg(test)] mod name { … }` takes, other attributes between included.
fn skip_tests(tokens: &[TokenTree]) -> Option<usize> {
    let attribute = |at: usize| match (tokens.get(at)?, tokens.get(at + 1)?) {
        (hash, TokenTree::Group(group)) if is_punct(hash, '#') => Some(group.stream().to_string()),
        _ => None,
    };
    let compact: String = attribute(0)?.split_whitespace().collect();
    if compact != "cfg(test)" {
        return None;
    }
    let mut at = 2;
    while attribute(at).is_some() {
        at += 2;
    }
    inline_module(&tokens[at..]).map(|_| at + 3)
}

fn inline_module(tokens: &[TokenTree]) -> Option<(String, Vec<TokenTree>)> {
    let [keyword, name, TokenTree::Group(body), ..] = tokens else { return None };
    if ident(keyword)? != "mod" || body.delimiter() != Delimiter::Brace {
        return None;
    }
    Some((ident(name)?, body.stream().into_iter().collect()))
}

fn ident(token: &TokenTree) -> Option<String> {
    match token {
        TokenTree::Ident(ident) => Some(ident.to_string()),
        _ => None,
    }
}

fn is_punct(token: &TokenTree, wanted: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == wanted)
}

fn is_double_colon(tokens: &[TokenTree]) -> bool {
    matches!(tokens, [one, two, ..] if is_punct(one, ':') && is_punct(two, ':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paths of more than one segment, from a source of module `deliver::claim`.
    fn read(source: &str) -> Vec<String> {
        let all = paths(source, &["deliver", "claim"]);
        let long = all.into_iter().filter(|path| path.len() > 1);
        long.map(|path| path.join("::")).collect()
    }

    #[test]
    fn every_form_of_an_import_is_seen() {
        let cases: &[(&str, &[&str])] = &[
            ("use crate::store;", &["crate::store"]),
            ("use crate::store::*;", &["crate::store"]),
            (
                "use crate::{event, store::{self, Row as R}};",
                &["crate::event", "crate::store::self", "crate::store::Row"],
            ),
            (
                "use super::effects::{Begin, End};",
                &["crate::deliver::effects::Begin", "crate::deliver::effects::End"],
            ),
            ("use super::super::store::Store;", &["crate::store::Store"]),
            ("use self::inner::X;", &["crate::deliver::claim::inner::X"]),
            ("mod inner { use super::super::Y; }", &["crate::deliver::Y"]),
            (
                "fn f() -> crate::store::Result<super::Z> {}",
                &["crate::store::Result", "crate::deliver::Z"],
            ),
            ("fn f() { select! { x = crate::store::next() => {} } }", &["crate::store::next"]),
            ("#[derive(sqlx::FromRow)] struct S;", &["sqlx::FromRow"]),
            ("fn f() { a::<crate::store::B>(); }", &["crate::store::B"]),
            ("pub(in crate::deliver) struct S;", &["crate::deliver"]),
        ];
        for (source, expected) in cases {
            assert_eq!(read(source), *expected, "{source}");
        }
    }

    #[test]
    fn comments_strings_and_tests_do_not_count() {
        let source = r#"
            //! See [`crate::store`].
            /// Not crate::store::Store.
            const S: &str = "crate::store::Store";
            #[cfg(test)]
            #[allow(unused)]
            mod tests { use crate::store::Store; }
            use crate::event::Event;
        "#;
        assert_eq!(read(source), ["crate::event::Event"]);
    }
}
