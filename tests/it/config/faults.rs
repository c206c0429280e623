//! Faults: each with its place and remedy, all at once.

use inboxd::config::{Config, Env};

use super::load;

/// One paragraph of `faults.txt`.
#[derive(Default)]
struct Case<'a> {
    env: Vec<(&'a str, &'a str)>,
    toml: String,
    faults: Vec<&'a str>,
}

fn case(paragraph: &str) -> Case<'_> {
    let mut case = Case::default();
    for line in paragraph.lines() {
        if let Some(variable) = line.strip_prefix('$') {
            case.env.push(variable.split_once('=').unwrap());
        } else if let Some(fault) = line.strip_prefix("=> ") {
            case.faults.push(fault);
        } else {
            case.toml.push_str(line);
            case.toml.push('\n');
        }
    }
    case
}

#[test]
fn each_fault_names_its_place_and_remedy() {
    let always = [
        ("TOKEN1", "1:a"),
        ("TOKEN2", "2:a"),
        ("TOKEN3", "3:a"),
        ("TOKEN4", "4:a"),
        ("TOKEN5", "5:a"),
        ("EMPTY", ""),
        ("BLANK", " \n"),
        ("SPACED", "CANARY canary42"),
    ];
    let mut cases = 0;
    for paragraph in include_str!("faults.txt").split("\n\n") {
        if paragraph.trim_start().starts_with('#') {
            continue;
        }
        let case = case(paragraph);
        let env: Vec<(&str, &str)> = case.env.into_iter().chain(always).collect();
        let faults = load(&case.toml, &env).expect_err(paragraph);
        assert_eq!(faults, case.faults, "\n{paragraph}\nis\n=> {}\n", faults.join("\n=> "));
        assert!(!faults.concat().contains("CANARY"), "{faults:?}");
        cases += 1;
    }
    assert!(cases > 50, "only {cases} cases were found");
}

#[test]
fn a_file_that_cannot_be_read_is_a_fault() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("none.toml");
    let message = Config::load(Some(&file), &Env::default()).unwrap_err().to_string();
    assert!(message.starts_with(&format!("{}: the config file cannot be read (", file.display())));
    std::fs::write(&file, b"\xff").unwrap();
    assert!(Config::load(Some(&file), &Env::default()).is_err());
}
