//! Parses Brook's text to a syntax tree, by recursive descent.

use std::fmt;

/// The maximum nesting of expressions and statements, and the maximum number of consecutive
/// operators or calls of an operand.
const DEPTH: u32 = 100;

/// An error in the program, with its line.
#[derive(Debug)]
pub struct Fault {
    pub line: u32,
    pub what: String,
}

impl std::error::Error for Fault {}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

/// A function or an array.
pub struct Definition {
    pub line: u32,
    pub name: String,
    pub kind: DefinitionKind,
}

pub enum DefinitionKind {
    Func { params: Vec<String>, body: Vec<Stmt> },
    Array(Vec<Element>),
}

/// The initial value of an array element.
pub enum Element {
    Number(i32),
    Text(String),
    Name(String),
}

pub struct Stmt {
    pub line: u32,
    pub kind: StmtKind,
}

pub enum StmtKind {
    Let(String, Expr),
    Assign(Expr, Expr),
    Expr(Expr),
    Return(Expr),
    Print(Vec<Expr>),
    While(Expr, Vec<Stmt>),
    If(Expr, Vec<Stmt>, Vec<Stmt>),
}

pub struct Expr {
    pub line: u32,
    pub kind: ExprKind,
}

pub enum ExprKind {
    Number(i32),
    Text(String),
    Name(String),
    Not(Box<Expr>),
    Negate(Box<Expr>),
    Length(Box<Expr>),
    Binary(Operator, Box<Expr>, Box<Expr>),
    Index(Box<Expr>, Box<Expr>),
    Call(Box<Expr>, Vec<Expr>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

/// The binary operators by precedence, the lowest first. All are left-associative.
const LEVELS: &[&[(&str, Operator)]] = &[
    &[("or", Operator::Or)],
    &[("and", Operator::And)],
    &[
        ("==", Operator::Equal),
        ("!=", Operator::NotEqual),
        ("<=", Operator::LessOrEqual),
        (">=", Operator::GreaterOrEqual),
        ("<", Operator::Less),
        (">", Operator::Greater),
    ],
    &[("+", Operator::Add), ("-", Operator::Subtract)],
    &[
        ("*", Operator::Multiply),
        ("/", Operator::Divide),
        ("%", Operator::Remainder),
    ],
];

const KEYWORDS: &[&str] = &[
    "func", "array", "let", "return", "print", "while", "do", "if", "then", "elif", "else", "end", "and", "or", "not",
];

#[derive(Clone, Debug, PartialEq)]
enum Token {
    /// A keyword, operator or bracket.
    Mark(&'static str),
    Name(String),
    Number(u32),
    Text(String),
    End,
}

const MARKS: &[&str] = &[
    "==", "!=", "<=", ">=", "<", ">", "=", "+", "-", "*", "/", "%", "(", ")", "[", "]", ",", "#",
];

fn tokens(source: &str) -> Result<Vec<(u32, Token)>, Fault> {
    let mut list = Vec::new();
    let mut last = 1;
    for (number, text) in (1..).zip(source.lines()) {
        last = number;
        let fault = |what: String| Fault { line: number, what };
        let mut rest = text.trim_start();
        while let Some(first) = rest.chars().next() {
            let token;
            (token, rest) = match first {
                ';' => break,
                '"' => {
                    let (inner, rest) = rest[1..]
                        .split_once('"')
                        .ok_or_else(|| fault("the text does not end on its line".to_owned()))?;
                    (Token::Text(inner.replace("\\n", "\n")), rest)
                }
                '0'..='9' => {
                    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
                    let digits = &rest[..end];
                    let value = digits.parse().ok().filter(|&value: &u32| value <= 1 << 31);
                    let value = value.ok_or_else(|| fault(format!("{digits} does not fit into 32 bits")))?;
                    (Token::Number(value), &rest[end..])
                }
                c if c.is_ascii_alphabetic() || c == '_' => {
                    let in_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
                    let end = rest.find(|c: char| !in_name(c)).unwrap_or(rest.len());
                    let word = &rest[..end];
                    let keyword = KEYWORDS.iter().find(|&&keyword| keyword == word);
                    let token = keyword.map_or_else(|| Token::Name(word.to_owned()), |mark| Token::Mark(mark));
                    (token, &rest[end..])
                }
                c => {
                    let mark = MARKS.iter().find(|mark| rest.starts_with(**mark));
                    let mark = mark.ok_or_else(|| fault(format!("`{c}` means nothing")))?;
                    (Token::Mark(mark), &rest[mark.len()..])
                }
            };
            list.push((number, token));
            rest = rest.trim_start();
        }
    }
    list.push((last, Token::End));
    Ok(list)
}

/// Parses a program.
pub fn parse(source: &str) -> Result<Vec<Definition>, Fault> {
    let mut parser = Parser {
        tokens: tokens(source)?,
        at: 0,
        depth: 0,
    };
    let mut list = Vec::new();
    while *parser.peek() != Token::End {
        list.push(parser.definition()?);
    }
    Ok(list)
}

struct Parser {
    tokens: Vec<(u32, Token)>,
    at: usize,
    depth: u32,
}

impl Parser {
    fn peek(&self) -> &Token {
        self.tokens.get(self.at).map_or(&Token::End, |(_, token)| token)
    }

    fn line(&self) -> u32 {
        let at = self.at.min(self.tokens.len() - 1);
        self.tokens[at].0
    }

    fn fail<T>(&self, wanted: &str) -> Result<T, Fault> {
        let found = match self.peek() {
            Token::Mark(mark) => format!("`{mark}`"),
            Token::Name(name) => format!("`{name}`"),
            Token::Number(number) => number.to_string(),
            Token::Text(_) => "a text".to_owned(),
            Token::End => "the end of the program".to_owned(),
        };
        Err(Fault {
            line: self.line(),
            what: format!("{wanted} expected, not {found}"),
        })
    }

    fn accept(&mut self, mark: &str) -> bool {
        let found = *self.peek() == Token::Mark(mark_of(mark));
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, mark: &str) -> Result<(), Fault> {
        if self.accept(mark) {
            Ok(())
        } else {
            self.fail(&format!("`{mark}`"))
        }
    }

    fn name(&mut self) -> Result<String, Fault> {
        match self.peek() {
            Token::Name(name) => {
                let name = name.clone();
                self.at += 1;
                Ok(name)
            }
            _ => self.fail("a name"),
        }
    }

    fn definition(&mut self) -> Result<Definition, Fault> {
        let line = self.line();
        let is_func = self.accept("func");
        if !is_func && !self.accept("array") {
            return self.fail("`func` or `array`");
        }
        let name = self.name()?;
        let kind = if is_func {
            self.expect("(")?;
            let mut params = Vec::new();
            while !self.accept(")") {
                if !params.is_empty() {
                    self.expect(",")?;
                }
                params.push(self.name()?);
            }
            let body = self.block(&["end"])?;
            self.expect("end")?;
            DefinitionKind::Func { params, body }
        } else if self.accept("[") {
            let Token::Number(size @ 0..=1_000_000) = *self.peek() else {
                return self.fail("a size up to a million");
            };
            self.at += 1;
            self.expect("]")?;
            DefinitionKind::Array((0..size).map(|_| Element::Number(0)).collect())
        } else {
            self.expect("=")?;
            self.expect("[")?;
            let mut elements = Vec::new();
            while !self.accept("]") {
                if !elements.is_empty() {
                    self.expect(",")?;
                }
                elements.push(self.element()?);
            }
            DefinitionKind::Array(elements)
        };
        Ok(Definition { line, name, kind })
    }

    fn element(&mut self) -> Result<Element, Fault> {
        let negative = self.accept("-");
        let element = match self.peek().clone() {
            Token::Number(number) => Element::Number(signed(number, negative)),
            Token::Text(text) if !negative => Element::Text(text),
            Token::Name(name) if !negative => Element::Name(name),
            _ => return self.fail("a number, text or name"),
        };
        self.at += 1;
        Ok(element)
    }

    /// Parses statements up to one of the marks.
    fn block(&mut self, ends: &[&str]) -> Result<Vec<Stmt>, Fault> {
        let mut list = Vec::new();
        while !ends.iter().any(|end| *self.peek() == Token::Mark(mark_of(end))) {
            list.push(self.nested(Self::statement)?);
        }
        Ok(list)
    }

    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T, Fault>) -> Result<T, Fault> {
        if self.depth == DEPTH {
            return self.too_deep();
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    fn too_deep<T>(&self) -> Result<T, Fault> {
        let what = format!("more than {DEPTH} levels");
        Err(Fault {
            line: self.line(),
            what,
        })
    }

    fn statement(&mut self) -> Result<Stmt, Fault> {
        let line = self.line();
        let kind = if self.accept("let") {
            let name = self.name()?;
            self.expect("=")?;
            StmtKind::Let(name, self.expr()?)
        } else if self.accept("return") {
            StmtKind::Return(self.expr()?)
        } else if self.accept("print") {
            let mut list = vec![self.expr()?];
            while self.accept(",") {
                list.push(self.expr()?);
            }
            StmtKind::Print(list)
        } else if self.accept("while") {
            let condition = self.expr()?;
            self.expect("do")?;
            let body = self.block(&["end"])?;
            self.expect("end")?;
            StmtKind::While(condition, body)
        } else if self.accept("if") {
            self.branches()?
        } else {
            let place = self.expr()?;
            if self.accept("=") {
                StmtKind::Assign(place, self.expr()?)
            } else {
                StmtKind::Expr(place)
            }
        };
        Ok(Stmt { line, kind })
    }

    /// Parses the rest of an `if` or `elif`, including `end`.
    fn branches(&mut self) -> Result<StmtKind, Fault> {
        let condition = self.expr()?;
        self.expect("then")?;
        let body = self.block(&["elif", "else", "end"])?;
        let line = self.line();
        let other = if self.accept("elif") {
            let kind = self.nested(Self::branches)?;
            vec![Stmt { line, kind }]
        } else {
            let other = if self.accept("else") {
                self.block(&["end"])?
            } else {
                Vec::new()
            };
            self.expect("end")?;
            other
        };
        Ok(StmtKind::If(condition, body, other))
    }

    fn expr(&mut self) -> Result<Expr, Fault> {
        self.nested(|parser| parser.binary(LEVELS))
    }

    fn binary(&mut self, levels: &[&[(&str, Operator)]]) -> Result<Expr, Fault> {
        let Some((level, tighter)) = levels.split_first() else {
            return self.nested(Self::unary);
        };
        let mut left = self.binary(tighter)?;
        for _ in 0..DEPTH {
            let line = self.line();
            let Some(&(_, operator)) = level.iter().find(|(mark, _)| self.accept(mark)) else {
                return Ok(left);
            };
            let right = self.binary(tighter)?;
            let kind = ExprKind::Binary(operator, Box::new(left), Box::new(right));
            left = Expr { line, kind };
        }
        self.too_deep()
    }

    fn unary(&mut self) -> Result<Expr, Fault> {
        let line = self.line();
        let make: fn(Box<Expr>) -> ExprKind = if self.accept("-") {
            if let Token::Number(number) = *self.peek() {
                self.at += 1;
                let kind = ExprKind::Number(signed(number, true));
                return Ok(Expr { line, kind });
            }
            ExprKind::Negate
        } else if self.accept("not") {
            ExprKind::Not
        } else if self.accept("#") {
            ExprKind::Length
        } else {
            return self.postfix();
        };
        let kind = make(Box::new(self.nested(Self::unary)?));
        Ok(Expr { line, kind })
    }

    fn postfix(&mut self) -> Result<Expr, Fault> {
        let line = self.line();
        let kind = match self.peek().clone() {
            Token::Number(number) => ExprKind::Number(signed(number, false)),
            Token::Text(text) => ExprKind::Text(text),
            Token::Name(name) => ExprKind::Name(name),
            Token::Mark("(") => {
                self.at += 1;
                let inner = self.expr()?;
                self.expect(")")?;
                return self.postfixes(inner);
            }
            _ => return self.fail("an expression"),
        };
        self.at += 1;
        self.postfixes(Expr { line, kind })
    }

    /// Parses calls and indices. They have to start on the line where their operand ends; otherwise
    /// a statement that starts with a bracket would continue the previous expression.
    fn postfixes(&mut self, mut expr: Expr) -> Result<Expr, Fault> {
        for _ in 0..DEPTH {
            let line = self.line();
            let before = self.tokens.get(self.at.wrapping_sub(1)).map_or(line, |(line, _)| *line);
            let kind = if line == before && self.accept("[") {
                let index = self.expr()?;
                self.expect("]")?;
                ExprKind::Index(Box::new(expr), Box::new(index))
            } else if line == before && self.accept("(") {
                let mut args = Vec::new();
                while !self.accept(")") {
                    if !args.is_empty() {
                        self.expect(",")?;
                    }
                    args.push(self.expr()?);
                }
                ExprKind::Call(Box::new(expr), args)
            } else {
                return Ok(expr);
            };
            expr = Expr { line, kind };
        }
        self.too_deep()
    }
}

/// Returns the mark in the tables.
fn mark_of(text: &str) -> &'static str {
    let mut all = KEYWORDS.iter().chain(MARKS);
    all.find(|mark| **mark == text).copied().unwrap_or("")
}

/// Converts a literal. The largest one, 2147483648, represents the smallest number.
fn signed(number: u32, negative: bool) -> i32 {
    let number = if negative { number.wrapping_neg() } else { number };
    number.cast_signed()
}
