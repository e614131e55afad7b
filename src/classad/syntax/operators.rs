//! Prefix and infix operators, and how tightly they bind.

use super::lexer::Tok;
use crate::expr::{Binary, Unary};

/// An operator that waits for its right operand.
#[derive(Clone, Copy)]
pub(super) enum Operator {
    Unary(Unary),
    Binary(Binary),
    And,
    Or,
}

pub(super) fn prefix(tok: &Tok<'_>) -> Option<(Unary, &'static str)> {
    let Tok::Sym(symbol) = tok else { return None };
    let unary = match *symbol {
        "-" => Unary::Minus,
        "+" => Unary::Plus,
        "!" => Unary::Not,
        "~" => Unary::Complement,
        _ => return None,
    };
    Some((unary, symbol))
}

pub(super) fn infix(tok: &Tok<'_>) -> Option<(Operator, &'static str)> {
    let (Tok::Sym(symbol) | Tok::Word(symbol)) = tok else { return None };
    let binary = match *symbol {
        "&&" => return Some((Operator::And, symbol)),
        "||" => return Some((Operator::Or, symbol)),
        "*" => Binary::Multiply,
        "/" => Binary::Divide,
        "%" => Binary::Modulus,
        "+" => Binary::Add,
        "-" => Binary::Subtract,
        "<<" => Binary::ShiftLeft,
        ">>" => Binary::ShiftRight,
        ">>>" => Binary::ShiftRightUnsigned,
        "<" => Binary::Less,
        "<=" => Binary::LessOrEqual,
        ">" => Binary::Greater,
        ">=" => Binary::GreaterOrEqual,
        "==" => Binary::Equal,
        "!=" => Binary::NotEqual,
        "=?=" | "is" => Binary::Is,
        "=!=" | "isnt" => Binary::Isnt,
        "&" => Binary::BitAnd,
        "^" => Binary::BitXor,
        "|" => Binary::BitOr,
        _ => return None,
    };
    Some((Operator::Binary(binary), symbol))
}

/// How tightly an operator binds: a higher number binds more tightly.
pub(super) fn precedence(operator: Operator) -> u8 {
    use Binary as B;
    match operator {
        Operator::Or => 1,
        Operator::And => 2,
        Operator::Binary(binary) => match binary {
            B::BitOr => 3,
            B::BitXor => 4,
            B::BitAnd => 5,
            B::Equal | B::NotEqual | B::Is | B::Isnt => 6,
            B::Less | B::LessOrEqual | B::Greater | B::GreaterOrEqual => 7,
            B::ShiftLeft | B::ShiftRight | B::ShiftRightUnsigned => 8,
            B::Add | B::Subtract => 9,
            B::Multiply | B::Divide | B::Modulus => 10,
        },
        Operator::Unary(_) => 11,
    }
}
