//! Functions of text.

use regex::Regex;

use super::super::bounds::MAX_VALUE;
use super::super::eval::convert;
use super::super::eval::value::Val;
use super::args::{arg, int, list, text};
use super::{Context, Function, MANY, Outcome, Refused};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("chomp", (1, 1), |_, args| {
        Ok(Val::text(text(args, 0)?.trim_end_matches(['\n', '\r'])))
    }),
    Function::new("indent", (2, 2), indent),
    Function::moving("join", (1, MANY), join),
    Function::new("lower", (1, 1), |_, args| {
        Ok(Val::text(text(args, 0)?.to_lowercase()))
    }),
    Function::new("upper", (1, 1), |_, args| {
        Ok(Val::text(text(args, 0)?.to_uppercase()))
    }),
    Function::new("title", (1, 1), title),
    Function::new("regex_replace", (3, 3), regex_replace),
    Function::new("replace", (3, 3), replace),
    Function::new("split", (2, 2), split),
    Function::new("strlen", (1, 1), |_, args| {
        Ok(Val::int(text(args, 0)?.chars().count() as i64))
    }),
    Function::new("strrev", (1, 1), |_, args| {
        Ok(Val::text(text(args, 0)?.chars().rev().collect::<String>()))
    }),
    Function::new("substr", (3, 3), substr),
    Function::new("trim", (2, 2), |_, args| {
        let cut: Vec<char> = text(args, 1)?.chars().collect();
        Ok(Val::text(text(args, 0)?.trim_matches(cut.as_slice())))
    }),
    Function::new("trimprefix", (2, 2), |_, args| {
        let (whole, cut) = (text(args, 0)?, text(args, 1)?);
        Ok(Val::text(
            whole.strip_prefix(cut.as_str()).unwrap_or(&whole),
        ))
    }),
    Function::new("trimsuffix", (2, 2), |_, args| {
        let (whole, cut) = (text(args, 0)?, text(args, 1)?);
        Ok(Val::text(
            whole.strip_suffix(cut.as_str()).unwrap_or(&whole),
        ))
    }),
    Function::new("trimspace", (1, 1), |_, args| {
        Ok(Val::text(text(args, 0)?.trim()))
    }),
];

fn indent(_: &Context<'_>, args: &[Val]) -> Outcome {
    let (width, whole) = (int(args, 0)?, text(args, 1)?);
    let width = usize::try_from(width).map_err(|_| "the indentation is negative")?;
    let lines = whole.matches('\n').count();
    bounded(lines.saturating_mul(width).saturating_add(whole.len()))?;
    Ok(Val::text(
        whole.replace('\n', &format!("\n{}", " ".repeat(width))),
    ))
}

fn join(_: &Context<'_>, args: &[Val]) -> Outcome {
    let (separator, mut runtime) = convert::to_text(arg(args, 0))?;
    let mut parts = Vec::new();
    for at in 1..args.len() {
        for item in list(args, at)? {
            let (part, of_runtime) = convert::to_text(item)?;
            runtime |= of_runtime;
            parts.push(part);
        }
    }
    let size: usize = parts.iter().map(|part| part.len() + separator.len()).sum();
    bounded(size)?;
    Ok(Val::maybe_runtime(parts.join(&separator), runtime))
}

fn title(_: &Context<'_>, args: &[Val]) -> Outcome {
    let mut result = String::new();
    let mut starts_word = true;
    for c in text(args, 0)?.chars() {
        if starts_word {
            result.extend(c.to_uppercase());
        } else {
            result.push(c);
        }
        starts_word = !(c.is_alphanumeric() || c == '_' || c == '\'');
    }
    Ok(Val::text(result))
}

fn replace(context: &Context<'_>, args: &[Val]) -> Outcome {
    let (whole, search, with) = (text(args, 0)?, text(args, 1)?, text(args, 2)?);
    // As with Nomad's parser, a search between slashes is a regular expression.
    if let Some(pattern) = search
        .strip_prefix('/')
        .and_then(|rest| rest.strip_suffix('/'))
    {
        let args = [Val::text(whole), Val::text(pattern), Val::text(with)];
        return regex_replace(context, &args);
    }
    let hits = whole.matches(&search).count();
    bounded(hits.saturating_mul(with.len()).saturating_add(whole.len()))?;
    Ok(Val::text(whole.replace(&search, &with)))
}

fn regex_replace(_: &Context<'_>, args: &[Val]) -> Outcome {
    let (whole, pattern, with) = (text(args, 0)?, text(args, 1)?, text(args, 2)?);
    if pattern.len() > 4096 {
        return Err(Refused::from("the pattern is longer than 4096 bytes"));
    }
    let regex = Regex::new(&pattern).map_err(|error| error.to_string())?;
    let mut result = String::new();
    let mut end = 0;
    for found in regex.captures_iter(&whole) {
        let Some(hit) = found.get(0) else { continue };
        result.push_str(whole.get(end..hit.start()).unwrap_or(""));
        found.expand(&with, &mut result);
        bounded(result.len())?;
        end = hit.end();
    }
    result.push_str(whole.get(end..).unwrap_or(""));
    Ok(Val::text(result))
}

fn split(_: &Context<'_>, args: &[Val]) -> Outcome {
    let (separator, whole) = (text(args, 0)?, text(args, 1)?);
    let parts: Vec<Val> = match separator.as_str() {
        "" => whole.chars().map(|c| Val::text(c.to_string())).collect(),
        separator => whole.split(separator).map(Val::text).collect(),
    };
    Ok(Val::list(parts)?)
}

fn substr(_: &Context<'_>, args: &[Val]) -> Outcome {
    let (whole, offset, length) = (text(args, 0)?, int(args, 1)?, int(args, 2)?);
    let chars: Vec<char> = whole.chars().collect();
    let count = chars.len() as i64;
    // A negative offset counts from the end; a negative length takes the rest.
    let start = if offset < 0 {
        offset.saturating_add(count)
    } else {
        offset
    }
    .clamp(0, count);
    let end = if length < 0 {
        count
    } else {
        start.saturating_add(length).min(count)
    };
    let part = chars.get(start as usize..end as usize).unwrap_or(&[]);
    Ok(Val::text(part.iter().collect::<String>()))
}

/// Refuses a result before it is made.
pub(super) fn bounded(size: usize) -> Result<(), Refused> {
    if size > MAX_VALUE {
        Err(Refused::Exhausted)
    } else {
        Ok(())
    }
}
