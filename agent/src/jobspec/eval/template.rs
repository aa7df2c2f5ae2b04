//! Templates: quoted text and heredocs with interpolations and directives.
//!
//! A heredoc's text is taken from the source line by line, not from the parsed pieces: its
//! indentation is a matter of whole lines, which may lie inside of directives, and a `~` strips
//! no further than its own line.

use core::ops::Range;
use std::rc::Rc;

use hcl_edit::Span;
use hcl_edit::template::{
    Directive, Element, ForDirective, HeredocTemplate, IfDirective, StringTemplate, Template,
};

use super::super::source::At;
use super::convert;
use super::scope::Scope;
use super::value::Val;
use super::{Evaluator, Fault};

/// How the literal text of a template is read.
#[derive(Clone, Copy)]
enum Style {
    /// As the parser read it.
    Quoted,
    /// From the source, without the first so many blanks of each line.
    Heredoc { indent: usize },
}

/// A text being put together.
#[derive(Default)]
struct Output {
    text: String,
    runtime: bool,
}

/// Whether the ends of a literal are stripped.
#[derive(Clone, Copy, Default)]
struct Strips {
    start: bool,
    end: bool,
}

impl Evaluator<'_> {
    pub(crate) fn quoted(
        &self,
        template: &StringTemplate,
        at: &At,
        scope: &Scope,
    ) -> Result<Val, Fault> {
        // "${x}" alone is x itself, whatever it is.
        if let Some(Element::Interpolation(only)) = template.as_single_element() {
            return self.eval(&only.expr, scope);
        }
        self.render(template, Style::Quoted, at, scope)
    }

    pub(crate) fn heredoc(
        &self,
        heredoc: &HeredocTemplate,
        at: &At,
        scope: &Scope,
    ) -> Result<Val, Fault> {
        let opening = format!("<<-{}", heredoc.delimiter.as_str());
        let indent = match heredoc.template.span() {
            Some(range) if self.line_before(range.start).ends_with(&opening) => {
                self.indent_of(&range)
            }
            _ => 0,
        };
        self.render(&heredoc.template, Style::Heredoc { indent }, at, scope)
    }

    /// The text from the last line break but one to the last, before an offset.
    fn line_before(&self, offset: usize) -> &str {
        let before = self.source.text().get(..offset).unwrap_or("");
        before.lines().next_back().unwrap_or("")
    }

    /// The blanks that all lines of a heredoc begin with; empty lines have none and do not count.
    fn indent_of(&self, heredoc: &Range<usize>) -> usize {
        let text = self.source.slice(heredoc);
        let filled = text.lines().filter(|line| !line.trim().is_empty());
        let blanks = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
        filled.map(blanks).min().unwrap_or(0)
    }

    fn render(
        &self,
        template: &Template,
        style: Style,
        at: &At,
        scope: &Scope,
    ) -> Result<Val, Fault> {
        let mut out = Output::default();
        self.elements(template, style, Strips::default(), at, scope, &mut out)?;
        Ok(Val::maybe_runtime(Rc::<str>::from(out.text), out.runtime))
    }

    fn elements(
        &self,
        template: &Template,
        style: Style,
        around: Strips,
        at: &At,
        scope: &Scope,
        out: &mut Output,
    ) -> Result<(), Fault> {
        let elements: Vec<&Element> = template.iter().collect();
        for (number, element) in elements.iter().enumerate() {
            match element {
                Element::Literal(literal) => {
                    let before = number.checked_sub(1).and_then(|at| elements.get(at));
                    let after = elements.get(number + 1);
                    let strips = Strips {
                        start: before.map_or(around.start, |before| strips_after(before)),
                        end: after.map_or(around.end, |after| strips_before(after)),
                    };
                    let text = self.literal(literal.value(), &literal.span(), style, strips);
                    self.append(&text, false, at, out)?;
                }
                Element::Interpolation(interpolation) => {
                    let val = self.eval(&interpolation.expr, scope)?;
                    let at = interpolation.expr.span();
                    let (text, runtime) = convert::to_text(&val)
                        .map_err(|why| self.fault(&at, format!("within a text {why}")))?;
                    self.append(&text, runtime, &at, out)?;
                }
                Element::Directive(directive) => match &**directive {
                    Directive::If(directive) => {
                        self.if_directive(directive, style, at, scope, out)?
                    }
                    Directive::For(directive) => {
                        self.for_directive(directive, style, at, scope, out)?;
                    }
                },
            }
        }
        Ok(())
    }

    fn append(&self, text: &str, runtime: bool, at: &At, out: &mut Output) -> Result<(), Fault> {
        self.spend(at, text.len() + 1)?;
        if out.text.len() + text.len() > super::super::bounds::MAX_VALUE {
            return Err(self.exhausted(at));
        }
        out.text.push_str(text);
        out.runtime |= runtime;
        Ok(())
    }

    fn if_directive(
        &self,
        directive: &IfDirective,
        style: Style,
        at: &At,
        scope: &Scope,
        out: &mut Output,
    ) -> Result<(), Fault> {
        let first = &directive.if_expr;
        let end = directive.endif_expr.strip;
        let holds = self.condition(&first.cond_expr, scope, "a condition of a template")?;
        if holds {
            let next = directive
                .else_expr
                .as_ref()
                .map_or(end, |other| other.strip);
            let around = Strips {
                start: first.strip.strip_end(),
                end: next.strip_start(),
            };
            return self.elements(&first.template, style, around, at, scope, out);
        }
        let Some(other) = &directive.else_expr else {
            return Ok(());
        };
        let around = Strips {
            start: other.strip.strip_end(),
            end: end.strip_start(),
        };
        self.elements(&other.template, style, around, at, scope, out)
    }

    fn for_directive(
        &self,
        directive: &ForDirective,
        style: Style,
        at: &At,
        scope: &Scope,
        out: &mut Output,
    ) -> Result<(), Fault> {
        let head = &directive.for_expr;
        let around = Strips {
            start: head.strip.strip_end(),
            end: directive.endfor_expr.strip.strip_start(),
        };
        for (key, value) in self.pairs(&head.collection_expr, scope, "a for of a template")? {
            let mut inner = scope.clone();
            if let Some(name) = &head.key_var {
                inner = inner.with(name.as_str(), key);
            }
            inner = inner.with(head.value_var.as_str(), value);
            self.spend(at, 1)?;
            self.elements(&head.template, style, around, at, &inner, out)?;
        }
        Ok(())
    }

    fn literal(&self, parsed: &str, at: &At, style: Style, strips: Strips) -> String {
        let (Style::Heredoc { indent }, Some(range)) = (style, at) else {
            let text = if strips.start {
                parsed.trim_start()
            } else {
                parsed
            };
            let text = if strips.end { text.trim_end() } else { text };
            return text.to_owned();
        };
        let raw = self.source.slice(range);
        let starts_line = self
            .source
            .text()
            .get(..range.start)
            .is_none_or(|s| s.ends_with('\n'));
        let last = raw.split_inclusive('\n').count().saturating_sub(1);
        let mut text = String::with_capacity(raw.len());
        for (number, line) in raw.split_inclusive('\n').enumerate() {
            let mut line = line;
            if indent > 0 && (number > 0 || starts_line) {
                line = without_indent(line, indent);
            }
            if strips.start && number == 0 {
                line = line.trim_start();
            }
            if strips.end && number == last {
                line = line.trim_end();
            }
            text.push_str(line);
        }
        text.replace("$${", "${").replace("%%{", "%{")
    }
}

/// The line without its first blanks; a line of fewer blanks keeps its end.
fn without_indent(line: &str, indent: usize) -> &str {
    let blanks = line.len() - line.trim_start_matches([' ', '\t']).len();
    line.get(blanks.min(indent)..).unwrap_or(line)
}

fn strips_after(element: &Element) -> bool {
    match element {
        Element::Literal(_) => false,
        Element::Interpolation(interpolation) => interpolation.strip.strip_end(),
        Element::Directive(directive) => match &**directive {
            Directive::If(directive) => directive.endif_expr.strip.strip_end(),
            Directive::For(directive) => directive.endfor_expr.strip.strip_end(),
        },
    }
}

fn strips_before(element: &Element) -> bool {
    match element {
        Element::Literal(_) => false,
        Element::Interpolation(interpolation) => interpolation.strip.strip_start(),
        Element::Directive(directive) => match &**directive {
            Directive::If(directive) => directive.if_expr.strip.strip_start(),
            Directive::For(directive) => directive.for_expr.strip.strip_start(),
        },
    }
}
