//! A small evaluator of the formulas' text: numbers and vectors, `+ - * /`, dot products, applied matrices, sums, powers.

use std::collections::HashMap;

/// What a name stands for.
#[derive(Clone, Debug)]
pub enum Value {
    Number(f64),
    Vector(Vec<f64>),
    /// A matrix, or anything else that is applied to a vector by standing before it.
    Map(fn(&Matrix, &[f64]) -> Vec<f64>, Matrix),
}

/// Row-major, `[n_out, n_in]`.
#[derive(Clone, Debug, Default)]
pub struct Matrix {
    pub rows: Vec<Vec<f64>>,
}

pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len(), "a dot product of unequal widths");
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

impl Value {
    pub fn number(&self) -> f64 {
        match self {
            Self::Number(number) => *number,
            other => panic!("a number was expected, not {other:?}"),
        }
    }

    pub fn vector(&self) -> &[f64] {
        match self {
            Self::Vector(vector) => vector,
            other => panic!("a vector was expected, not {other:?}"),
        }
    }

    fn zip(self, other: Self, f: fn(f64, f64) -> f64) -> Self {
        match (self, other) {
            (Self::Number(a), Self::Number(b)) => Self::Number(f(a, b)),
            (Self::Vector(a), Self::Vector(b)) => {
                assert_eq!(a.len(), b.len(), "a sum of unequal widths");
                Self::Vector(a.iter().zip(&b).map(|(a, b)| f(*a, *b)).collect())
            }
            (Self::Vector(a), Self::Number(b)) => Self::Vector(a.iter().map(|a| f(*a, b)).collect()),
            (a, b) => panic!("{a:?} and {b:?} do not go together"),
        }
    }

    /// What stands beside each other: a scaled or a mapped vector.
    fn apply(self, other: Self) -> Self {
        match (self, other) {
            (Self::Number(a), Self::Number(b)) => Self::Number(a * b),
            (Self::Number(a), Self::Vector(b)) => Self::Vector(b.iter().map(|b| a * b).collect()),
            (Self::Map(map, matrix), Self::Vector(b)) => Self::Vector(map(&matrix, &b)),
            (a, b) => panic!("{a:?} before {b:?}"),
        }
    }
}

/// Names and functions of one formula.
pub trait Scope {
    /// What a name stands for, its indices in numbers: `x_3^1`, `e_3,2`, `W^Q`.
    fn name(&self, name: &str) -> Value;
    /// What a function makes of its arguments.
    fn call(&self, name: &str, arguments: &[Value]) -> Value;
    /// The range of a sum's index.
    fn range(&self) -> Vec<usize>;
}

/// A right-hand side that is being read.
pub struct Reader<'a> {
    text: Vec<char>,
    at: usize,
    scope: &'a dyn Scope,
    /// The numbers of `t`, `i`, `j`, `n`.
    indices: HashMap<char, i64>,
}

impl<'a> Reader<'a> {
    pub fn new(text: &str, scope: &'a dyn Scope, indices: &HashMap<char, i64>) -> Self {
        Self { text: text.chars().collect(), at: 0, scope, indices: indices.clone() }
    }

    /// The value of the whole text.
    pub fn value(mut self) -> Value {
        let value = self.sum();
        assert_eq!(self.at, self.text.len(), "{:?} is not read to its end", self.text.iter().collect::<String>());
        value
    }

    fn rest(&self) -> String {
        self.text[self.at..].iter().collect()
    }

    fn takes(&mut self, what: &str) -> bool {
        let found = self.rest().starts_with(what);
        self.at += if found { what.len() } else { 0 };
        found
    }

    fn sum(&mut self) -> Value {
        let mut value = if self.takes("-") { Value::Number(-1.0).apply(self.quotient()) } else { self.quotient() };
        loop {
            if self.takes(" + ") {
                value = value.zip(self.quotient(), |a, b| a + b);
            } else if self.takes(" - ") {
                value = value.zip(self.quotient(), |a, b| a - b);
            } else {
                return value;
            }
        }
    }

    fn quotient(&mut self) -> Value {
        let mut value = self.product();
        while self.takes(" / ") || self.takes("/") {
            value = value.zip(self.product(), |a, b| a / b);
        }
        value
    }

    fn product(&mut self) -> Value {
        let value = self.beside();
        if self.takes(" . ") { Value::Number(dot(value.vector(), self.beside().vector())) } else { value }
    }

    /// Things beside each other, applied from the right.
    fn beside(&mut self) -> Value {
        if let Some(index) = ["sum_i ", "sum_j "].iter().find(|sum| self.rest().starts_with(**sum)) {
            return self.summed(index.chars().nth(4).unwrap());
        }
        let value = self.power();
        let begins = |text: &str| text.starts_with(|c: char| c.is_alphabetic() || "([|".contains(c) || c.is_numeric());
        match self.rest().strip_prefix(' ') {
            Some(next) if begins(next) => {
                self.at += 1;
                value.apply(self.beside())
            }
            _ => value,
        }
    }

    fn summed(&mut self, index: char) -> Value {
        self.at += "sum_i ".len();
        let (start, outer) = (self.at, self.indices.get(&index).copied());
        let mut total: Option<Value> = None;
        for i in self.scope.range() {
            self.at = start;
            self.indices.insert(index, i as i64);
            let term = self.beside();
            total = Some(match total {
                Some(total) => total.zip(term, |a, b| a + b),
                None => term,
            });
        }
        match outer {
            Some(outer) => self.indices.insert(index, outer),
            None => self.indices.remove(&index),
        };
        total.expect("a sum over something")
    }

    fn power(&mut self) -> Value {
        let mut value = self.atom();
        loop {
            if self.takes("^2") {
                value = Value::Number(value.number().powi(2));
            } else if self.takes("_i") {
                value = Value::Number(value.vector()[self.indices[&'i'] as usize - 1]);
            } else {
                return value;
            }
        }
    }

    fn atom(&mut self) -> Value {
        if self.takes("(") {
            let value = self.sum();
            assert!(self.takes(")"), "no ) before {:?}", self.rest());
            return value;
        }
        if self.takes("|") {
            let value = self.sum().number().abs();
            assert!(self.takes("|"), "no | before {:?}", self.rest());
            return Value::Number(value);
        }
        if self.takes("[") {
            let (mut all, mut names) = (Vec::new(), Vec::new());
            loop {
                if self.takes("...") {
                    names.push("...".to_owned());
                } else {
                    let start = self.at;
                    all.push(self.sum().vector().to_vec());
                    names.push(self.text[start..self.at].iter().collect());
                }
                if !self.takes("; ") {
                    break;
                }
            }
            assert!(self.takes("]"), "no ] before {:?}", self.rest());
            // `[z^1; ...; z^4]`: what is left out is named like the first.
            if let [first, dots, last] = &names[..]
                && dots == "..."
            {
                let n: usize = last.rsplit('^').next().unwrap().parse().unwrap();
                let one =
                    |k: usize| Reader::new(&first.replace("^1", &format!("^{k}")), self.scope, &self.indices).value();
                all = (1..=n).map(|k| one(k).vector().to_vec()).collect();
            }
            return Value::Vector(all.concat());
        }
        if self.rest().starts_with(|c: char| c.is_numeric()) {
            let digits: String = self.rest().chars().take_while(|c| c.is_numeric()).collect();
            self.at += digits.len();
            return Value::Number(digits.parse().unwrap());
        }
        self.named()
    }

    fn named(&mut self) -> Value {
        let letters: String = self.rest().chars().take_while(|c| c.is_alphabetic() || "~'".contains(*c)).collect();
        assert!(!letters.is_empty(), "a name was expected before {:?}", self.rest());
        self.at += letters.chars().count();
        if self.takes("(") {
            let mut arguments = vec![self.sum()];
            while self.takes(", ") {
                arguments.push(self.sum());
            }
            assert!(self.takes(")"), "no ) before {:?}", self.rest());
            return self.scope.call(&letters, &arguments);
        }
        let mut name = letters;
        for mark in ["_", "^"] {
            if self.takes(mark) {
                name += mark;
                name += &self.index();
            }
        }
        if let Some(index) = name.chars().next().filter(|_| name.len() == 1).and_then(|c| self.indices.get(&c)) {
            return Value::Number(*index as f64);
        }
        self.scope.name(&name)
    }

    /// `ti` as `3,2`, `(t-1)` as `2`; letters that are no index stay.
    fn index(&mut self) -> String {
        let number = |c: char| self.indices.get(&c).copied();
        if self.rest().starts_with('(') {
            let inner: Vec<char> = self.rest().chars().skip(1).take_while(|c| *c != ')').collect();
            let value = |c: char| number(c).or(c.to_digit(10).map(i64::from)).unwrap_or_else(|| panic!("index {c}"));
            assert_eq!((inner.len(), inner[1]), (3, '-'), "an index {inner:?}");
            let index = (value(inner[0]) - value(inner[2])).to_string();
            self.at += inner.len() + 2;
            return index;
        }
        let letters: Vec<char> = self.rest().chars().take_while(|c| c.is_alphanumeric()).collect();
        self.at += letters.len();
        if letters.iter().all(|c| number(*c).is_some()) {
            return letters.iter().map(|c| number(*c).unwrap().to_string()).collect::<Vec<_>>().join(",");
        }
        letters.into_iter().collect()
    }
}
