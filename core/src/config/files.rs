//! Settings from files, as container engines mount secrets: every setting that can come from the variable `NAME` can
//! also come from a file whose path is in `NAME_FILE`. An empty variable or file counts as absent.

use std::ffi::OsString;

use clap::builder::Resettable;
use clap::error::ErrorKind;
use clap::{Arg, Command, Parser};

/// Parses the command line, the environment and the files it names. Exits with an error message if they are invalid,
/// as `T::parse` does.
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

/// Returns the command with the contents of files as default values.
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
        // clap needs defaults that live as long as the process.
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
        format!("Could not read {}, which {name}_FILE names: {error}", path.display())
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
    fn a_setting_can_come_from_a_file_and_the_command_line_overrides_it() {
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
            "without a file, it is still required"
        );
    }

    #[test]
    fn empty_values_count_as_absent_and_a_variable_overrides_a_file() {
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
        assert!(read(&both, &here).is_ok(), "a file that is overridden is not read");
    }

    #[test]
    fn the_error_names_a_missing_file() {
        let missing = [("RETOUCH_TEST_KEY_FILE", "/nowhere/key")];
        let message = read(&missing, &["--url", "here"]).unwrap_err();
        let expected = "Could not read /nowhere/key, which RETOUCH_TEST_KEY_FILE names";
        assert!(message.contains(expected), "{message}");
    }
}
