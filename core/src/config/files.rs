//! Settings from files, as container engines mount secrets: every setting that can come from the variable `NAME` can
//! also come from a file whose path is in `NAME_FILE`. An empty variable or file counts as absent.

use std::ffi::OsString;

use clap::builder::Resettable;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgMatches, Command, Parser};

/// Parses the command line, the environment and the files it names. Exits with an error message if they are invalid,
/// as `T::parse` does.
pub fn parse<T: Parser>() -> T {
    #[expect(
        clippy::disallowed_methods,
        reason = "this reads the environment for the clap structs"
    )]
    let variable = |name: &str| std::env::var_os(name);
    parse_from(std::env::args_os(), &variable).unwrap_or_else(|error| error.exit())
}

fn parse_from<T: Parser>(
    arguments: impl IntoIterator<Item = OsString>,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Result<T, clap::Error> {
    let mut unreadable = Vec::new();
    let mut command = with_files(T::command(), &[], variable, &mut unreadable);
    let matches = command
        .try_get_matches_from_mut(arguments)
        // `command` has lost the variables that are empty; a fresh one names them.
        .map_err(|error| with_variables(error, &T::command()))?;
    // A subcommand does not need the files of another one.
    let chosen = chosen(&matches);
    if let Some(file) = unreadable.iter().find(|file| chosen.starts_with(&file.subcommands)) {
        return Err(command.error(ErrorKind::ValueValidation, &file.problem));
    }
    T::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// Names the environment variables of the settings that an error is about, because that is where most operators set them.
fn with_variables(mut error: clap::Error, command: &Command) -> clap::Error {
    let is_of_setting = matches!(
        error.kind(),
        ErrorKind::MissingRequiredArgument | ErrorKind::InvalidValue | ErrorKind::ValueValidation
    );
    if !is_of_setting {
        return error;
    }
    let settings = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(setting)) => std::slice::from_ref(setting),
        Some(ContextValue::Strings(settings)) => settings,
        _ => return error,
    };
    let names = settings.iter().filter_map(|setting| {
        let long = setting.strip_prefix("--")?.split([' ', '=']).next()?;
        variable_of(command, long)
    });
    let names: Vec<_> = names.collect();
    if !names.is_empty() {
        let tip = format!("in the environment: {}", names.join(", "));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// Returns the variable of an option, here or in a subcommand.
fn variable_of(command: &Command, long: &str) -> Option<String> {
    let mut arguments = command.get_arguments();
    let of_own = arguments.find(|arg| arg.get_long() == Some(long)).and_then(|arg| arg.get_env());
    let own = of_own.map(|name| name.to_string_lossy().into_owned());
    own.or_else(|| command.get_subcommands().find_map(|command| variable_of(command, long)))
}

/// A file that a variable names and that cannot be read.
struct Unreadable {
    /// The subcommands that lead to its setting.
    subcommands: Vec<String>,
    problem: String,
}

/// Returns the subcommands that the user has chosen, from the outside in.
fn chosen(matches: &ArgMatches) -> Vec<String> {
    let mut chosen = Vec::new();
    let mut matches = matches;
    while let Some((name, inner)) = matches.subcommand() {
        chosen.push(name.to_owned());
        matches = inner;
    }
    chosen
}

/// Returns the command with the contents of files as default values. A setting whose file cannot be read has none.
fn with_files(
    mut command: Command,
    parents: &[String],
    variable: &dyn Fn(&str) -> Option<OsString>,
    unreadable: &mut Vec<Unreadable>,
) -> Command {
    let mut found = Vec::new();
    for arg in command.get_arguments() {
        match text_of(arg, variable) {
            Ok(text) => found.extend(text.map(|text| (arg.get_id().clone(), Some(text)))),
            Err(problem) => {
                unreadable.push(Unreadable { subcommands: parents.to_vec(), problem });
                found.push((arg.get_id().clone(), None));
            }
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
        let text = text.map(|text| &*Box::leak(text.into_boxed_str()));
        command = command.mut_arg(id, |arg| arg.required(false).default_value(text));
    }
    let names: Vec<_> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    for name in names {
        let sub = command.find_subcommand(&name).cloned().unwrap_or_default();
        let sub =
            with_files(sub, &[parents, std::slice::from_ref(&name)].concat(), variable, unreadable);
        command = command.mut_subcommand(name, |_| sub);
    }
    command
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
    use super::*;

    #[derive(Debug, Parser)]
    enum Program {
        Serve {
            #[arg(long, env = "RETOUCH_TEST_URL")]
            url: String,
            #[arg(long, env = "RETOUCH_TEST_KEY")]
            key: Option<String>,
        },
        Check,
    }

    /// Reads the settings of `serve`.
    fn read(variables: &[(&str, &str)], arguments: &[&str]) -> Result<Program, String> {
        read_all(variables, &[&["serve"], arguments].concat())
    }

    fn read_all(variables: &[(&str, &str)], arguments: &[&str]) -> Result<Program, String> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        };
        let arguments = ["program"].iter().chain(arguments).map(OsString::from);
        parse_from(arguments, &variable).map_err(|error| error.to_string())
    }

    #[test]
    fn a_setting_can_come_from_a_file_and_the_command_line_overrides_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("url");
        std::fs::write(&file, "postgres://somewhere\n").unwrap();
        let files = [("RETOUCH_TEST_URL_FILE", file.to_str().unwrap())];
        let Program::Serve { url, key } = read(&files, &[]).unwrap() else { unreachable!() };
        assert_eq!((url.as_str(), key), ("postgres://somewhere", None));
        let Program::Serve { url, .. } = read(&files, &["--url", "here"]).unwrap() else {
            unreachable!()
        };
        assert_eq!(url, "here");
    }

    #[test]
    fn an_error_names_the_variable_of_its_setting() {
        for variables in [&[][..], &[("RETOUCH_TEST_URL", "")]] {
            let missing = read(variables, &[]).unwrap_err();
            assert!(missing.contains("--url") && missing.contains("RETOUCH_TEST_URL"), "{missing}");
        }
        let misplaced = read_all(&[], &["--url", "here", "serve"]).unwrap_err();
        assert!(misplaced.contains("'serve --url' exists"), "{misplaced}");
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
            read(&[("RETOUCH_TEST_KEY_FILE", empty)], &here).unwrap()
        else {
            unreachable!()
        };
        assert_eq!(of_empty, None);
        let both = [("RETOUCH_TEST_KEY", ""), ("RETOUCH_TEST_KEY_FILE", key)];
        let Program::Serve { key: of_file, .. } = read(&both, &here).unwrap() else {
            unreachable!()
        };
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

    #[test]
    fn a_subcommand_does_not_need_the_files_of_another_one() {
        let missing = [("RETOUCH_TEST_URL_FILE", "/nowhere/url")];
        assert!(matches!(read_all(&missing, &["check"]), Ok(Program::Check)));
        assert!(read(&missing, &[]).unwrap_err().contains("/nowhere/url"));
    }
}
