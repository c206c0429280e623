//! Secrets: how they are read, and that nothing shows them.

use inboxd::config::{Config, Env};

use super::{CANARY, load};

#[test]
fn one_trailing_line_break_is_no_part_of_a_secret_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("inboxd.toml");
    let toml = "[[unifyport]]\nname = \"e\"\nsecrets = [{ file = \"secrets/one\" }]\n";
    std::fs::write(&file, toml).unwrap();
    std::fs::create_dir(folder.path().join("secrets")).unwrap();
    let load = |content: &[u8]| {
        std::fs::write(folder.path().join("secrets/one"), content).unwrap();
        Config::load(Some(&file), &Env::default())
            .map(|config| config.unifyport[0].secrets[0].expose().to_owned())
            .map_err(|faults| faults.to_string())
    };
    for (content, secret) in
        [("s", "s"), ("s\n", "s"), ("s\r\n", "s"), ("s\n\n", "s\n"), ("s\r", "s\r"), (" s ", " s ")]
    {
        assert_eq!(load(content.as_bytes()).unwrap(), secret);
    }
    for content in ["", "\n", "\r\n", "\n\n", "  \n"] {
        let fault = load(content.as_bytes()).unwrap_err();
        assert!(fault.ends_with("secrets/one\" is empty; put the secret in it"), "{fault}");
    }
    assert!(load(b"\xff").unwrap_err().ends_with("not UTF-8; a secret is text"));
    assert!(load(&[b'x'; 65_537]).unwrap_err().contains("is over 64KiB"));
    std::fs::remove_file(folder.path().join("secrets/one")).unwrap();
    let fault = Config::load(Some(&file), &Env::default()).unwrap_err().to_string();
    assert!(fault.contains("secrets/one\" cannot be read ("), "{fault}");
}

#[test]
fn no_debug_shows_a_secret() {
    let toml = "[[telegram]]\nname = \"b\"\ntoken = { env = \"B\" }\n\
                [[unifyport]]\nname = \"e\"\nsecrets = [{ env = \"C\" }]\n\
                [[token]]\nname = \"t\"\nvalue = { env = \"C\" }\nrole = \"operator\"\n\
                [store]\nurl = { env = \"U\" }\n";
    let url = format!("postgres://u:{CANARY}@h/d?password={CANARY}");
    let bot = format!("1:{CANARY}");
    let env = [("B", bot.as_str()), ("C", CANARY), ("U", &url)];
    let config = load(toml, &env).unwrap();
    for text in [
        format!("{config:?}"),
        format!("{config:#?}"),
        format!("{:?}", config.store.url.database()),
        format!("{:?}", Env::from(env)),
    ] {
        assert!(!text.contains(CANARY), "{text}");
    }
    assert_eq!(config.store.url.display(), "postgres://u@h/d");
}

#[test]
fn broken_toml_tells_its_position_and_not_its_text() {
    for toml in [
        format!("[store]\nurl = {CANARY}\n"),
        format!("[store]\nurl = \"{CANARY}\n"),
        format!("[store]\nurl = \"\\{CANARY}\"\n"),
        format!("[store]\n{CANARY} {CANARY}\n"),
        format!("[store]\n{CANARY} = 1\n{CANARY} = 2\n"),
        format!("[store]\nurl = 'a' {CANARY}\n"),
        format!("[store]\nurl = 2026-{CANARY}\n"),
    ] {
        for fault in load(&toml, &[]).expect_err(&toml) {
            assert!(fault.contains("this is not TOML"), "{fault}");
            assert!(
                fault.starts_with("inboxd.toml:2 col") || fault.starts_with("inboxd.toml:3 col")
            );
            assert!(!fault.contains(CANARY), "{fault}");
        }
    }
}

#[test]
fn whoever_only_looks_needs_no_secret_but_all_else_holds() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("inboxd.toml");
    let toml = "[[telegram]]\nname = \"b\"\ntoken = { env = \"B\" }\n\
                [[telegram]]\nname = \"c\"\ntoken = { env = \"C\" }\n\
                [[unifyport]]\nname = \"e\"\nsecrets = [{ env = \"D\" }, { file = \"none\" }]\n\
                [[token]]\nname = \"t\"\nvalue = { env = \"E\" }\nrole = \"operator\"\n";
    std::fs::write(&file, toml).unwrap();
    let config = Config::load_to_look(Some(&file), &Env::default()).unwrap();
    assert_eq!((config.telegram.len(), config.unifyport.len(), config.tokens.len()), (2, 1, 1));
    assert_eq!(Config::load(Some(&file), &Env::default()).unwrap_err().list().len(), 5);

    std::fs::write(&file, "[store]\nurl = { env = \"STORE\" }\n").unwrap();
    let fault = Config::load_to_look(Some(&file), &Env::default()).unwrap_err().to_string();
    assert!(fault.contains("STORE is not set"), "{fault}");
    std::fs::write(&file, "[[telegram]]\nname = \"b\"\ntoken = \"1:written-out\"\n").unwrap();
    assert!(Config::load_to_look(Some(&file), &Env::default()).is_err());
}
