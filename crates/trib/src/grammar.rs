//! One grammar for all subcommands: an option of one name means the same everywhere, units are the
//! same, and examples are command lines that the tool accepts.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::builder::ValueParser;
use clap::{Arg, Command, CommandFactory, Parser};
use trib_lab::BitRate;
use trib_topology::graph::LinkRate;

use crate::Arguments;

/// Every command, also hidden ones, with the words that lead to it.
fn commands() -> Vec<(String, Command)> {
    let mut root = Arguments::command();
    root.build();
    let mut open = vec![("trib".to_owned(), root)];
    let mut all = Vec::new();
    while let Some((words, command)) = open.pop() {
        let below = command.get_subcommands().filter(|below| below.get_name() != "help");
        open.extend(below.map(|below| (format!("{words} {}", below.get_name()), below.clone())));
        all.push((words, command));
    }
    all
}

/// Every option, with or without a value, and the command to which it belongs.
fn options() -> Vec<(String, Arg)> {
    let of = |(words, command): (String, Command)| {
        let options: Vec<Arg> = command.get_arguments().filter(|option| option.get_long().is_some()).cloned().collect();
        options.into_iter().map(move |option| (words.clone(), option))
    };
    let options = commands().into_iter().flat_map(of);
    options.filter(|(_, option)| !["help", "version"].contains(&option.get_long().unwrap_or_default())).collect()
}

fn value_name(option: &Arg) -> String {
    if !option.get_action().takes_values() {
        return "nothing".to_owned();
    }
    let names = option.get_value_names().unwrap_or_default();
    names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

fn parses_into<T: Clone + Send + Sync + 'static>(option: &Arg) -> bool {
    // A parser tells its type only by comparison with another parser of that type.
    let function: fn(&str) -> Result<T, String> = |_| Err(String::new());
    option.get_value_parser().type_id() == ValueParser::from(function).type_id()
}

#[test]
fn an_option_of_one_name_takes_the_same_everywhere() {
    let mut known: BTreeMap<String, (String, String)> = BTreeMap::new();
    let mut faults = Vec::new();
    for (words, option) in options() {
        let name = option.get_long().expect("only those were taken").to_owned();
        let takes = value_name(&option);
        if TWO_FORMS.iter().any(|(two, forms)| *two == name && forms.contains(&takes.as_str())) {
            continue;
        }
        let (first, expected) = known.entry(name.clone()).or_insert_with(|| (words.clone(), takes.clone()));
        if takes != *expected {
            faults.push(format!("--{name} takes {takes} with `{words}` and {expected} with `{first}`"));
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn a_letter_stands_for_one_option() {
    let mut known: BTreeMap<char, String> = BTreeMap::new();
    for (words, option) in options() {
        let (Some(letter), Some(name)) = (option.get_short(), option.get_long()) else { continue };
        let expected = known.entry(letter).or_insert_with(|| name.to_owned());
        assert_eq!(name, expected, "-{letter} of `{words}`");
    }
}

#[test]
fn what_is_named_is_named_by_name_and_old_words_are_hidden() {
    for (words, option) in options() {
        assert_ne!(option.get_long(), Some("lab"), "{words}: which laboratory is said with --name");
        assert!(option.get_visible_aliases().unwrap_or_default().is_empty(), "{words}: one visible name an option");
    }
    for words in
        ["lab up", "lab down", "lab exec", "lab status", "lab mpirun", "fabric up", "fabric down", "service install"]
    {
        let wanted = format!("trib {words}");
        let (_, command) = commands().into_iter().find(|(known, _)| *known == wanted).expect("it is a command");
        assert!(command.get_arguments().any(|option| option.get_long() == Some("name")), "{wanted}");
    }
}

#[test]
fn units_are_the_same_everywhere() {
    let (mut times, mut rates) = (0, 0);
    for (words, option) in options() {
        let name = option.get_long().unwrap_or_default();
        match value_name(&option).as_str() {
            "SECONDS" => {
                assert!(parses_into::<Duration>(&option), "--{name} of `{words}` is no time");
                times += 1;
            }
            "RATE" => {
                let is_rate = parses_into::<BitRate>(&option) || parses_into::<LinkRate>(&option);
                assert!(is_rate, "--{name} of `{words}` is no rate");
                rates += 1;
            }
            _ => {
                let last = name.rsplit('-').next().unwrap_or_default();
                assert!(!["rate", "timeout"].contains(&last), "--{name} of `{words}` has no unit");
            }
        }
    }
    assert!(times > 10 && rates > 3, "{times} times, {rates} rates");
    for text in ["500mbit", "2.5gbit"] {
        assert!(text.parse::<BitRate>().is_ok() && text.parse::<LinkRate>().is_ok(), "{text}");
    }
}

#[test]
fn every_example_is_a_command_line_that_the_tool_takes() {
    let (mut taken, mut faults) = (0, Vec::new());
    for (words, command) in commands() {
        // The examples are read as they are written, because help wraps what it shows.
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let Some((_, examples)) = help.split_once("Examples:\n") else { continue };
        let examples = examples.split("\n\n").next().unwrap_or_default().replace("\\\n", " ");
        for line in examples.lines() {
            for line in command_lines(line) {
                match Arguments::try_parse_from(&line) {
                    Err(mistake) if mistake.use_stderr() => faults.push(format!("{words}: {line:?}: {mistake}")),
                    _ => taken += 1,
                }
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
    assert!(taken > 60, "{taken}");
}

/// Our command lines in a line for a shell, as words. Redirections, pipes and comments are left to
/// the shell; a command behind `--` is looked at as well.
fn command_lines(line: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let line = line.replace("\"$(", "").replace(")\"", "").replace("eval ", "");
    for part in line.split(['|', ';']) {
        let words = words(part);
        let Some(start) = words.iter().position(|word| word == "trib") else { continue };
        found.push(words[start..].to_vec());
    }
    found
}

/// Splits a line as a shell does, as far as examples need it: blanks, quotes, comments,
/// redirections.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for letter in text.chars() {
        match (letter, quote) {
            ('#' | '>' | '<' | '&', None) if word.is_none() => break,
            ('\'' | '"', None) => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (letter, Some(open)) if letter == open => quote = None,
            (letter, None) if letter.is_whitespace() => words.extend(word.take()),
            (letter, _) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

/// Options of one name that say the same thing in two forms: as a number, or as names.
const TWO_FORMS: &[(&str, &[&str])] =
    &[("hosts", &["N", "NAME,...", "LIST"]), ("dtype", &["TYPE", "TYPE,..."]), ("listen", &["IP:PORT", "IP:PORT,..."])];
