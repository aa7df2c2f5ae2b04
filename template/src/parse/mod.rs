//! Tokens as a tree: blocks, and the templates that are defined in them.
//!
//! Variables are resolved here: each has its place on a stack, which grows and shrinks while
//! rendering exactly as it did while reading.

mod pipe;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ast::{Body, Choice, Loop, Node};
use crate::error::{Fault, Position};
use crate::lex::{self, Kind, Token};
use crate::literal;
use crate::options::{DEPTH, Options};

/// Everything that a text says.
#[derive(Debug, Default)]
pub(crate) struct Parsed {
    pub(crate) main: Body,
    pub(crate) named: BTreeMap<Arc<[u8]>, Body>,
}

/// Reads a template.
pub(crate) fn parse(text: &str, options: &Options) -> Result<Parsed, Fault> {
    let tokens = lex::tokens(text, options)?;
    let mut parser = Parser {
        text,
        tokens: &tokens,
        at: 0,
        depth: 0,
        loops: 0,
        blocks: 0,
        variables: vec!["$"],
        named: BTreeMap::new(),
    };
    let (main, end) = parser.body()?;
    match end.keyword {
        Keyword::Nothing => Ok(Parsed {
            main,
            named: parser.named,
        }),
        other => Err(Fault::syntax(
            end.position,
            format!(
                "{{{{{}}}}} without a block that it belongs to",
                other.name()
            ),
        )),
    }
}

/// What ended a body.
#[derive(Clone, Copy)]
struct End {
    position: Position,
    keyword: Keyword,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Keyword {
    /// The text is over.
    Nothing,
    Else,
    End,
}

impl Keyword {
    fn name(self) -> &'static str {
        match self {
            Self::Nothing => "",
            Self::Else => "else",
            Self::End => "end",
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    tokens: &'a [Token],
    at: usize,
    depth: usize,
    /// How many loops of this template are open.
    loops: usize,
    /// How many blocks of any kind are open.
    blocks: usize,
    variables: Vec<&'a str>,
    named: BTreeMap<Arc<[u8]>, Body>,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> &'a Token {
        // The last token is the end, and is never taken.
        let last = self.tokens.len() - 1;
        &self.tokens[self.at.min(last)]
    }

    fn take(&mut self) -> &'a Token {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn words(&self, token: &Token) -> &'a str {
        self.text.get(token.range.clone()).unwrap_or_default()
    }

    fn skip_space(&mut self) {
        while self.peek().kind == Kind::Space {
            self.at += 1;
        }
    }

    fn deeper<T>(
        &mut self,
        position: Position,
        inside: impl FnOnce(&mut Self) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        if self.depth >= DEPTH {
            let message = format!("more than {DEPTH} blocks or parentheses inside of each other");
            return Err(Fault::limit(message).at(position));
        }
        self.depth += 1;
        let found = inside(self)?;
        self.depth -= 1;
        Ok(found)
    }

    /// Everything up to an `else` or `end` that belongs to whoever asked. `else` is not taken
    /// whole: what follows the word is the asker's.
    fn body(&mut self) -> Result<(Body, End), Fault> {
        let mut body = Body::new();
        loop {
            let token = self.take();
            let position = token.position();
            match token.kind {
                Kind::Text => body.push(Node::Text(token.range.clone())),
                Kind::Open => {
                    self.skip_space();
                    if let Some(keyword) = self.action(position, &mut body)? {
                        return Ok((body, End { position, keyword }));
                    }
                }
                _ => {
                    let keyword = Keyword::Nothing;
                    return Ok((body, End { position, keyword }));
                }
            }
        }
    }

    fn action(&mut self, position: Position, body: &mut Body) -> Result<Option<Keyword>, Fault> {
        let token = self.peek();
        let word = match token.kind {
            Kind::Word => self.words(token),
            _ => "",
        };
        if is_keyword(word) {
            self.take();
        }
        match word {
            "end" => return self.close(word).map(|()| Some(Keyword::End)),
            "else" => return Ok(Some(Keyword::Else)),
            "if" => body.push(Node::If(self.choice(position, "if")?)),
            "with" => body.push(Node::With(self.choice(position, "with")?)),
            "range" => body.push(Node::Range(self.range(position)?)),
            "template" => body.push(self.template(position)?),
            "block" => body.push(self.block(position)?),
            "define" => self.define(position)?,
            "break" => body.push(self.jump(position, word, Node::Break)?),
            "continue" => body.push(self.jump(position, word, Node::Continue)?),
            _ => body.push(Node::Action(self.pipe(Kind::Close, false, "the action")?)),
        }
        Ok(None)
    }

    fn close(&mut self, of: &str) -> Result<(), Fault> {
        self.skip_space();
        let token = self.take();
        if token.kind == Kind::Close {
            return Ok(());
        }
        let message = format!("nothing may follow {of:?} here: close the action");
        Err(Fault::syntax(token.position(), message))
    }

    fn jump(&mut self, position: Position, word: &str, node: Node) -> Result<Node, Fault> {
        if self.loops == 0 {
            let message = format!("{{{{{word}}}}} has a meaning inside of {{{{range}}}} only");
            return Err(Fault::syntax(position, message));
        }
        self.close(word)?;
        Ok(node)
    }

    /// A block's inside: one level deeper, with variables of its own.
    fn scope<T>(
        &mut self,
        position: Position,
        inside: impl FnOnce(&mut Self) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let variables = self.variables.len();
        self.blocks += 1;
        let found = self.deeper(position, inside)?;
        self.blocks -= 1;
        self.variables.truncate(variables);
        Ok(found)
    }

    /// `if` and `with`, after the word.
    fn choice(&mut self, position: Position, word: &'static str) -> Result<Choice, Fault> {
        self.scope(position, |parser| {
            let mut arms = Vec::new();
            let mut otherwise = Body::new();
            loop {
                let pipe = parser.pipe(Kind::Close, false, word)?;
                let (body, end) = parser.inner()?;
                arms.push((pipe, body));
                match end.keyword {
                    Keyword::Else if parser.chains(word) => {}
                    Keyword::Else => {
                        otherwise = parser.last(position, word)?;
                        return Ok(Choice { arms, otherwise });
                    }
                    Keyword::End => return Ok(Choice { arms, otherwise }),
                    Keyword::Nothing => return Err(unclosed(position, word)),
                }
            }
        })
    }

    /// A body whose variables end with it.
    fn inner(&mut self) -> Result<(Body, End), Fault> {
        let variables = self.variables.len();
        let found = self.body()?;
        self.variables.truncate(variables);
        Ok(found)
    }

    /// Whether the word goes on after `else`.
    fn chains(&mut self, word: &str) -> bool {
        self.skip_space();
        let token = self.peek();
        let chains = token.kind == Kind::Word && self.words(token) == word;
        if chains {
            self.take();
        }
        chains
    }

    /// What follows a plain `else`, up to the end.
    fn last(&mut self, position: Position, word: &str) -> Result<Body, Fault> {
        self.close("else")?;
        let (body, end) = self.inner()?;
        match end.keyword {
            Keyword::End => Ok(body),
            Keyword::Nothing => Err(unclosed(position, word)),
            Keyword::Else => {
                let message = format!("a second {{{{else}}}} in one {{{{{word}}}}}");
                Err(Fault::syntax(end.position, message))
            }
        }
    }

    fn range(&mut self, position: Position) -> Result<Loop, Fault> {
        self.scope(position, |parser| {
            let over = parser.pipe(Kind::Close, true, "range")?;
            parser.loops += 1;
            let (body, end) = parser.inner()?;
            parser.loops -= 1;
            let otherwise = match end.keyword {
                Keyword::Nothing => return Err(unclosed(position, "range")),
                Keyword::End => Body::new(),
                Keyword::Else => parser.last(position, "range")?,
            };
            Ok(Loop {
                position,
                over,
                body,
                otherwise,
            })
        })
    }

    fn template(&mut self, position: Position) -> Result<Node, Fault> {
        let name = self.template_name("template")?;
        self.skip_space();
        let data = match self.peek().kind {
            Kind::Close => {
                self.take();
                None
            }
            _ => Some(self.pipe(Kind::Close, false, "template")?),
        };
        Ok(Node::Template {
            position,
            name,
            data,
        })
    }

    fn template_name(&mut self, word: &str) -> Result<Arc<[u8]>, Fault> {
        self.skip_space();
        let token = self.take();
        let name = match token.kind {
            Kind::Quoted => literal::text(self.words(token)),
            Kind::Raw => Some(literal::raw(self.words(token))),
            _ => None,
        };
        let message = || format!("{{{{{word}}}}} wants a name in quotes");
        name.ok_or_else(|| Fault::syntax(token.position(), message()))
    }

    fn define(&mut self, position: Position) -> Result<(), Fault> {
        if self.blocks > 0 {
            let message = "{{define}} inside of a block: move it to the top of the template";
            return Err(Fault::syntax(position, message));
        }
        let name = self.template_name("define")?;
        self.close("define")?;
        self.defined(position, name, "define")
    }

    fn block(&mut self, position: Position) -> Result<Node, Fault> {
        let name = self.template_name("block")?;
        let pipe = self.pipe(Kind::Close, false, "block")?;
        self.defined(position, name.clone(), "block")?;
        let data = Some(pipe);
        Ok(Node::Template {
            position,
            name,
            data,
        })
    }

    /// The body of a template with a name: nothing of what is around it is seen in it.
    fn defined(&mut self, position: Position, name: Arc<[u8]>, word: &str) -> Result<(), Fault> {
        let variables = std::mem::replace(&mut self.variables, vec!["$"]);
        let loops = std::mem::take(&mut self.loops);
        let (body, end) = self.scope(position, Self::body)?;
        self.variables = variables;
        self.loops = loops;
        match end.keyword {
            Keyword::End => self.keep(position, name, body),
            Keyword::Nothing => Err(unclosed(position, word)),
            Keyword::Else => {
                let message = format!("{{{{{word}}}}} has no {{{{else}}}}");
                Err(Fault::syntax(end.position, message))
            }
        }
    }

    /// One that says nothing may be defined again.
    fn keep(&mut self, position: Position, name: Arc<[u8]>, body: Body) -> Result<(), Fault> {
        let is_not_blank = |body: &Body| !body.iter().all(|node| is_blank(node, self.text));
        let known = self.named.get(&name);
        if known.is_some_and(is_not_blank) && is_not_blank(&body) {
            let name = String::from_utf8_lossy(&name);
            let message = format!("there are two templates {name:?}: give one another name");
            return Err(Fault::syntax(position, message));
        }
        if known.is_none() || is_not_blank(&body) {
            self.named.insert(name, body);
        }
        Ok(())
    }
}

fn is_blank(node: &Node, text: &str) -> bool {
    match node {
        Node::Text(range) => (text.get(range.clone())).is_none_or(|text| text.trim().is_empty()),
        _ => false,
    }
}

fn unclosed(position: Position, word: &str) -> Fault {
    let message = format!("{{{{{word}}}}} is not closed: add {{{{end}}}}");
    Fault::syntax(position, message)
}

/// Whether an action that begins with this word is no pipeline.
fn is_keyword(word: &str) -> bool {
    matches!(
        word,
        "if" | "with"
            | "range"
            | "template"
            | "block"
            | "define"
            | "else"
            | "end"
            | "break"
            | "continue"
    )
}
