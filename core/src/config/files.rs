//! The environment as container engines hand it out: wherever a setting can come from the variable `NAME`, it can
//! come from the file that `NAME_FILE` names; a variable or a file that is empty is one that is not there.

use std::ffi::OsString;

use clap::builder::Resettable;
use clap::error::ErrorKind;
use clap::{Arg, Command, Parser};

/// Reads the command line, the environment and the files that it names; ends the process with a sentence when
/// something of it cannot be used, as `T::parse` does.
pub fn parse<T: Parser>() -> T {
    #[expect(
        clippy::disallowed_methods,
        reason = "this reads the environment for the clap structs"
    )]
    let variable = |name: &str| std::env::var_os(name);
    let mut command = match with_files(T::command(), &variable) {
        Ok(command) => command,
        Err(problem) => T::command().error(ErrorKind::ValueValidation, problem).exit(),
    };
    let matches = command.get_matches_mut();
    T::from_arg_matches(&matches).unwrap_or_else(|error| error.format(&mut command).exit())
}

/// The command with what lies in files as the default of each setting that has one.
fn with_files(
    mut command: Command,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Command, String> {
    let mut found = Vec::new();
    for arg in command.get_arguments() {
        if let Some(text) = text_of(arg, variable)? {
            found.push((arg.get_id().clone(), text));
        }
    }
    command = command.mut_args(|arg| {
        let is_empty = arg
            .get_env()
            .and_then(|name| name.to_str())
            .is_some_and(|name| variable(name).is_some_and(|value| value.is_empty()));
        if is_empty { arg.env(Resettable::Reset) } else { arg }
    });
    for (id, text) in found {
        // What clap keeps as a default lives as long as the process.
        let text: &'static str = Box::leak(text.into_boxed_str());
        command = command.mut_arg(id, |arg| arg.required(false).default_value(text));
    }
    let names: Vec<_> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    for name in names {
        let sub = command.find_subcommand(&name).cloned().unwrap_or_default();
        let sub = with_files(sub, variable)?;
        command = command.mut_subcommand(name, |_| sub);
    }
    Ok(command)
}

fn text_of(
    arg: &Arg,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Option<String>, String> {
    let Some(name) = arg.get_env().and_then(|name| name.to_str()) else { return Ok(None) };
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    if set(name).is_some() {
        return Ok(None);
    }
    let Some(path) = set(&format!("{name}_FILE")) else { return Ok(None) };
    let text = std::fs::read_to_string(&path).map_err(|error| {
        format!("{name}_FILE names {}, which cannot be read: {error}", path.display())
    })?;
    let text = text.trim_end_matches(['\n', '\r']);
    Ok((!text.is_empty()).then(|| text.to_owned()))
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, FromArgMatches};

    use super::*;

    #[derive(Debug, Parser)]
    enum Program {
        Serve {
            #[arg(long, env = "RETOUCH_TEST_URL")]
            url: String,
            #[arg(long, env = "RETOUCH_TEST_KEY")]
            key: Option<String>,
        },
    }

    fn read(variables: &[(&str, &str)], arguments: &[&str]) -> Result<Program, String> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        };
        let command = with_files(Program::command(), &variable)?;
        let arguments = ["program", "serve"].iter().chain(arguments);
        let matches = command.try_get_matches_from(arguments).map_err(|error| error.to_string())?;
        Program::from_arg_matches(&matches).map_err(|error| error.to_string())
    }

    #[test]
    fn a_setting_may_lie_in_a_file_and_the_command_line_still_wins() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("url");
        std::fs::write(&file, "postgres://somewhere\n").unwrap();
        let files = [("RETOUCH_TEST_URL_FILE", file.to_str().unwrap())];
        let Program::Serve { url, key } = read(&files, &[]).unwrap();
        assert_eq!((url.as_str(), key), ("postgres://somewhere", None));
        let Program::Serve { url, .. } = read(&files, &["--url", "here"]).unwrap();
        assert_eq!(url, "here");
        assert!(
            read(&[], &[]).unwrap_err().contains("--url"),
            "without a file it is still required"
        );
    }

    #[test]
    fn what_is_empty_is_not_there_and_a_variable_goes_before_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let (key, empty) = (folder.path().join("key"), folder.path().join("empty"));
        std::fs::write(&key, "from a file").unwrap();
        std::fs::write(&empty, "\n").unwrap();
        let (key, empty) = (key.to_str().unwrap(), empty.to_str().unwrap());
        let here = ["--url", "here"];
        let Program::Serve { key: of_empty, .. } =
            read(&[("RETOUCH_TEST_KEY_FILE", empty)], &here).unwrap();
        assert_eq!(of_empty, None);
        let both = [("RETOUCH_TEST_KEY", ""), ("RETOUCH_TEST_KEY_FILE", key)];
        let Program::Serve { key: of_file, .. } = read(&both, &here).unwrap();
        assert_eq!(of_file.as_deref(), Some("from a file"));
        let both = [("RETOUCH_TEST_KEY", "set"), ("RETOUCH_TEST_KEY_FILE", "/nowhere")];
        assert!(read(&both, &here).is_ok(), "a file that is not needed is not read");
    }

    #[test]
    fn a_missing_file_is_named() {
        let missing = [("RETOUCH_TEST_KEY_FILE", "/nowhere/key")];
        let said = read(&missing, &["--url", "here"]).unwrap_err();
        assert!(said.contains("RETOUCH_TEST_KEY_FILE names /nowhere/key"), "{said}");
    }
}
