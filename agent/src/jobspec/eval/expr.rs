//! Expressions other than templates and references.

use std::collections::BTreeMap;

use hcl_edit::Span;
use hcl_edit::expr::{BinaryOp, Conditional, Expression, ForExpr, FuncCall, Object, ObjectKey};

use super::super::bounds::ITEM;
use super::super::functions;
use super::scope::Scope;
use super::value::{Number, Val};
use super::{Evaluator, Fault, convert, ops};

impl Evaluator<'_> {
    /// The value of an expression.
    pub(crate) fn eval(&self, expr: &Expression, scope: &Scope) -> Result<Val, Fault> {
        let at = expr.span();
        self.spend(&at, ITEM)?;
        match expr {
            Expression::Null(_) => Ok(Val::Null),
            Expression::Bool(value) => Ok(Val::Bool(*value.value())),
            Expression::Number(number) => {
                let number = number.value();
                let whole = number.as_i64().map(Number::Int);
                let float = || number.as_f64().map(Number::from_f64);
                let number = whole.or_else(float).unwrap_or(Number::Int(0));
                Ok(Val::Number(number))
            }
            Expression::String(text) => {
                self.spend(&at, text.len())?;
                Ok(Val::text(text.as_str()))
            }
            Expression::Array(array) => {
                let items: Result<_, _> = array.iter().map(|item| self.eval(item, scope)).collect();
                self.list(&at, items?)
            }
            Expression::Object(object) => self.object(expr, object, scope),
            Expression::StringTemplate(template) => self.quoted(template, &at, scope),
            Expression::HeredocTemplate(template) => self.heredoc(template, &at, scope),
            Expression::Parenthesis(inner) => self.eval(inner.inner(), scope),
            Expression::Variable(name) => self.variable(name.as_str(), &at, scope),
            Expression::Conditional(cond) => self.conditional(cond, scope),
            Expression::FuncCall(call) => self.call(call, &at, scope),
            Expression::Traversal(traversal) => self.traversal(traversal, &at, scope),
            Expression::UnaryOp(op) => {
                let val = self.eval(&op.expr, scope)?;
                self.known(&at, &val, "an operator")?;
                ops::unary(*op.operator.value(), &val).map_err(|why| self.fault(&at, why))
            }
            Expression::BinaryOp(op) => self.binary(op, scope),
            Expression::ForExpr(expr) => self.for_expr(expr, scope),
        }
    }

    fn binary(&self, op: &BinaryOp, scope: &Scope) -> Result<Val, Fault> {
        let left = self.eval(&op.lhs_expr, scope)?;
        let right = self.eval(&op.rhs_expr, scope)?;
        self.known(&op.lhs_expr.span(), &left, "an operator")?;
        self.known(&op.rhs_expr.span(), &right, "an operator")?;
        let at = op.span();
        self.spend(&at, left.weight().min(right.weight()))?;
        let result = ops::binary(*op.operator.value(), &left, &right);
        result.map_err(|why| self.fault(&at, why))
    }

    fn object(&self, expr: &Expression, object: &Object, scope: &Scope) -> Result<Val, Fault> {
        let mut entries = BTreeMap::new();
        for (key, value) in object {
            let name = match key {
                ObjectKey::Ident(name) => name.as_str().to_owned(),
                ObjectKey::Expression(key) => self.key(key, scope)?,
            };
            self.spend(&expr.span(), name.len())?;
            entries.insert(name, self.eval(value.expr(), scope)?);
        }
        self.map(&expr.span(), entries)
    }

    /// The name that an expression gives to an entry. A bare word is a name, not a reference.
    fn key(&self, key: &Expression, scope: &Scope) -> Result<String, Fault> {
        if let Expression::Variable(name) = key {
            return Ok(name.as_str().to_owned());
        }
        let val = self.eval(key, scope)?;
        self.known(&key.span(), &val, "a key of a map")?;
        let text = convert::to_text(&val);
        text.map(|(text, _)| text)
            .map_err(|why| self.fault(&key.span(), format!("as a key {why}")))
    }

    fn conditional(&self, cond: &Conditional, scope: &Scope) -> Result<Val, Fault> {
        let at = cond.cond_expr.span();
        let chosen = self.condition(&cond.cond_expr, scope, "a conditional")?;
        let (taken, other) = if chosen {
            (&cond.true_expr, &cond.false_expr)
        } else {
            (&cond.false_expr, &cond.true_expr)
        };
        let val = self.eval(taken, scope)?;
        // Both results have one type; of two primitive ones, that is text.
        let primitive = |val: &Val| matches!(val, Val::Bool(_) | Val::Number(_) | Val::Text(_));
        if primitive(&val) && !matches!(val, Val::Text(_)) {
            let other = self.eval(other, scope).ok();
            let differs = |other: &Val| primitive(other) && other.kind() != val.kind();
            if other.is_some_and(|other| differs(&other)) {
                return convert::text_of(&val).map_err(|why| self.fault(&at, why));
            }
        }
        Ok(val)
    }

    /// Whether a condition holds.
    pub(crate) fn condition(
        &self,
        expr: &Expression,
        scope: &Scope,
        what: &str,
    ) -> Result<bool, Fault> {
        let val = self.eval(expr, scope)?;
        self.known(&expr.span(), &val, what)?;
        convert::bool_of(&val)
            .map_err(|why| self.fault(&expr.span(), format!("as a condition {why}")))
    }

    /// Keys and values that a `for` or a `for_each` goes through.
    pub(crate) fn pairs(
        &self,
        expr: &Expression,
        scope: &Scope,
        what: &str,
    ) -> Result<Vec<(Val, Val)>, Fault> {
        let val = self.eval(expr, scope)?;
        let at = expr.span();
        match &val {
            Val::List(list) => {
                self.spend(&at, list.items.len() * ITEM)?;
                let items = list.items.iter().enumerate();
                Ok(items
                    .map(|(at, val)| (Val::int(at as i64), val.clone()))
                    .collect())
            }
            Val::Map(map) => {
                self.spend(&at, map.entries.keys().map(|key| key.len() + ITEM).sum())?;
                let entries = map.entries.iter();
                Ok(entries
                    .map(|(key, val)| (Val::text(key.as_str()), val.clone()))
                    .collect())
            }
            other => {
                self.known(&at, other, what)?;
                Err(self.fault(
                    &at,
                    format!("{what} needs a list or a map, not {}", other.kind()),
                ))
            }
        }
    }

    fn for_expr(&self, expr: &ForExpr, scope: &Scope) -> Result<Val, Fault> {
        let at = expr.span();
        let mut list = Vec::new();
        let mut groups: BTreeMap<String, Vec<Val>> = BTreeMap::new();
        for (key, value) in self.pairs(&expr.intro.collection_expr, scope, "for")? {
            let mut inner = scope.clone();
            if let Some(name) = &expr.intro.key_var {
                inner = inner.with(name.as_str(), key);
            }
            inner = inner.with(expr.intro.value_var.as_str(), value);
            if let Some(cond) = &expr.cond
                && !self.condition(&cond.expr, &inner, "the condition of a for")?
            {
                continue;
            }
            let value = self.eval(&expr.value_expr, &inner)?;
            let Some(key_expr) = &expr.key_expr else {
                list.push(value);
                continue;
            };
            let val = self.eval(key_expr, &inner)?;
            self.known(&key_expr.span(), &val, "a key of a for")?;
            let (key, _) = convert::to_text(&val)
                .map_err(|why| self.fault(&key_expr.span(), format!("as a key {why}")))?;
            let group = groups.entry(key).or_default();
            if !expr.grouping && !group.is_empty() {
                let fault = self.fault(&key_expr.span(), "two items have the same key");
                return Err(fault.help("Write \"...\" after the value to collect them in lists."));
            }
            group.push(value);
        }
        if expr.key_expr.is_none() {
            return self.list(&at, list);
        }
        let mut entries = BTreeMap::new();
        for (key, mut group) in groups {
            let value = match group.pop() {
                Some(value) if !expr.grouping => value,
                last => {
                    group.extend(last);
                    self.list(&at, group)?
                }
            };
            entries.insert(key, value);
        }
        self.map(&at, entries)
    }

    fn call(&self, call: &FuncCall, at: &super::At, scope: &Scope) -> Result<Val, Fault> {
        let name = call.name.name.as_str();
        if !call.name.namespace.is_empty() {
            return Err(self.fault(at, "there are no functions with a namespace"));
        }
        match name {
            "try" | "can" => return self.attempt(name, call, at, scope),
            "convert" => return self.convert_call(call, at, scope),
            _ => {}
        }
        let function = functions::find(name).map_err(|problem| {
            let fault = self.fault(at, problem.message);
            fault.maybe_help(problem.help)
        })?;
        let mut args = Vec::with_capacity(call.args.len());
        for arg in call.args.iter() {
            args.push(self.eval(arg, scope)?);
        }
        if call.args.expand_final() {
            match args.pop() {
                Some(Val::List(list)) => args.extend(list.items.iter().cloned()),
                _ => return Err(self.fault(at, "\"...\" needs a list before it")),
            }
        }
        let work = args.iter().map(Val::weight).fold(1, usize::saturating_add);
        self.spend(at, work)?;
        if function.reads_inside {
            for (val, arg) in args.iter().zip(call.args.iter()) {
                self.known(&arg.span(), val, &format!("the function {name}"))?;
            }
        }
        let context = functions::Context { files: self.files };
        let result = function.call(&context, &args);
        let val = result.map_err(|why| match why {
            functions::Refused::Because(why) => self.fault(at, format!("{name}: {why}")),
            functions::Refused::Exhausted => self.exhausted(at),
        })?;
        self.spend(at, val.weight())?;
        Ok(val)
    }

    /// `try` is its first argument that has a value, `can` is whether its argument has one.
    fn attempt(
        &self,
        name: &str,
        call: &FuncCall,
        at: &super::At,
        scope: &Scope,
    ) -> Result<Val, Fault> {
        let mut last = self.fault(at, format!("{name} needs an argument"));
        if name == "can" && call.args.len() != 1 {
            return Err(self.fault(at, "can needs exactly one argument"));
        }
        for arg in call.args.iter() {
            match self.eval(arg, scope) {
                Ok(_) if name == "can" => return Ok(Val::Bool(true)),
                Ok(val) => return Ok(val),
                Err(fault) => last = fault,
            }
        }
        // A spent budget stays an error, whoever asks.
        self.spend(at, 1)?;
        if name == "can" && !call.args.is_empty() {
            return Ok(Val::Bool(false));
        }
        Err(last)
    }

    fn convert_call(&self, call: &FuncCall, at: &super::At, scope: &Scope) -> Result<Val, Fault> {
        let (Some(value), Some(wanted), 2) = (call.args.get(0), call.args.get(1), call.args.len())
        else {
            return Err(self.fault(at, "convert needs a value and a type"));
        };
        let val = self.eval(value, scope)?;
        let wanted = super::types::parse(self, wanted)?;
        self.spend(at, val.weight())?;
        wanted
            .convert(&val)
            .map_err(|why| self.fault(at, format!("convert: {why}")))
    }
}
