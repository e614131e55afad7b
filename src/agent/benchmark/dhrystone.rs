//! Dhrystone: a synthetic mix of integer, text and control statements.
//!
//! Source: R. P. Weicker, "Dhrystone: A Synthetic Systems Programming Benchmark", CACM 27 (10), 1984, and the notes on
//! version 2 (SIGPLAN Notices 23 (8), 1988): its procedures P0 to P8 and functions F1 to F3, the distribution of their
//! statements and the values of all variables at the end. One pass of P0 is one Dhrystone. Procedures are not inlined, as
//! Weicker's rules ask.

use std::hint::black_box;

/// The length of a row of the arrays.
const ROW: usize = 50;
/// A text of Dhrystone, 30 characters long.
type Text = [u8; 30];

const FIRST: Text = *b"DHRYSTONE PROGRAM, 1'ST STRING";
const SECOND: Text = *b"DHRYSTONE PROGRAM, 2'ND STRING";
const THIRD: Text = *b"DHRYSTONE PROGRAM, 3'RD STRING";
const SOME: Text = *b"DHRYSTONE PROGRAM, SOME STRING";

/// Weicker's enumeration of five values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ident {
    One,
    Two,
    Three,
    Four,
    Five,
}

/// Weicker's pointer to a record. No pointer ever leads to the record at the head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Link {
    Next,
}

/// Weicker's record with a link, a discriminant and three fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Record {
    link: Option<Link>,
    discriminant: Ident,
    choice: Ident,
    number: i32,
    text: Text,
}

/// The local variables of P0, whose values are checked at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Locals {
    one: i32,
    two: i32,
    three: i32,
    choice: Ident,
    text: Text,
}

/// The global variables of the benchmark.
#[derive(Debug, Clone)]
pub(super) struct Dhrystone {
    head: Record,
    next: Record,
    number: i32,
    flag: bool,
    letter_one: u8,
    letter_two: u8,
    row: [i32; ROW],
    table: Box<[[i32; ROW]; ROW]>,
    /// How many Dhrystones have run.
    passes: i32,
    /// The locals at the end of the last pass.
    last: Option<Locals>,
}

impl Dhrystone {
    /// The variables as they are before the first pass.
    pub(super) fn new() -> Self {
        let head = Record {
            link: Some(Link::Next),
            discriminant: Ident::One,
            choice: Ident::Three,
            number: 40,
            text: SOME,
        };
        Self {
            head,
            next: Record {
                link: None,
                discriminant: Ident::One,
                choice: Ident::Five,
                number: 0,
                text: [0; 30],
            },
            number: 0,
            flag: false,
            letter_one: 0,
            letter_two: 0,
            row: [0; ROW],
            table: Box::new([[0; ROW]; ROW]),
            passes: 0,
            last: None,
        }
    }

    /// Runs this many Dhrystones.
    pub(super) fn run(&mut self, passes: u32) {
        for _ in 0..passes {
            self.passes = self.passes.wrapping_add(1);
            self.last = Some(black_box(black_box(&mut *self).p0()));
        }
    }

    /// Whether all variables have the values that Weicker states for the end; false before the first pass.
    pub(super) fn is_right(&self) -> bool {
        let head = Record { number: 17, ..Self::new().head };
        let next = Record { discriminant: Ident::One, choice: Ident::Two, number: 18, ..head };
        let locals = Locals { one: 5, two: 13, three: 7, choice: Ident::Two, text: SECOND };
        self.last == Some(locals)
            && (self.head, self.next) == (head, next)
            && (self.number, self.flag) == (5, true)
            && (self.letter_one, self.letter_two) == (b'A', b'B')
            && self.row.get(8) == Some(&7)
            && self.table.get(8).and_then(|row| row.get(7)) == Some(&self.passes)
    }

    /// The main loop's body.
    fn p0(&mut self) -> Locals {
        self.p5();
        self.p4();
        let (mut one, mut two, mut three) = (2, 3, 0);
        let mut choice = Ident::Two;
        let mut text = black_box(SECOND);
        self.flag = !self.f2(&FIRST, &text);
        while one < two {
            three = 5 * one - two;
            three = p7(one, two, three);
            one += 1;
        }
        self.p8(one, three);
        self.p1();
        let mut letter = b'A';
        while letter <= self.letter_two {
            if choice == self.f1(letter, b'C') {
                choice = self.p6(Ident::One);
                text = THIRD;
                two = self.passes;
                self.number = self.passes;
            }
            letter += 1;
        }
        two *= one;
        // The divisor is 7.
        one = two.checked_div(three).unwrap_or(0);
        two = 7 * (two - three) - one;
        one = self.p2(one);
        Locals { one, two, three, choice, text }
    }

    fn record(&mut self, link: Option<Link>) -> &mut Record {
        match link {
            Some(Link::Next) => &mut self.next,
            None => &mut self.head,
        }
    }

    /// P1: records and links. Works on the record at the head.
    #[inline(never)]
    fn p1(&mut self) {
        let to = black_box(self.head.link);
        *self.record(to) = self.head;
        self.head.number = 5;
        self.record(to).number = 5;
        let link = self.p3();
        self.record(to).link = link;
        if self.record(to).discriminant == Ident::One {
            let choice = self.p6(self.head.choice);
            let link = self.head.link;
            let next = self.record(to);
            next.link = link;
            next.choice = choice;
            next.number = p7(6, 10, next.number);
        } else {
            self.head = *self.record(to);
        }
    }

    /// P2: a loop that ends after one pass.
    #[inline(never)]
    fn p2(&mut self, number: i32) -> i32 {
        let mut local = number + 10;
        loop {
            if self.letter_one == b'A' {
                local -= 1;
                return local - self.number;
            }
            // Never reached: P5 has set the letter.
            self.letter_one = b'A';
        }
    }

    /// P3: follows the head's link, and sets the head's number.
    #[inline(never)]
    fn p3(&mut self) -> Option<Link> {
        let link = self.head.link;
        self.head.number = p7(10, self.number, self.head.number);
        link
    }

    /// P4: logical operations.
    #[inline(never)]
    fn p4(&mut self) {
        let is_a = self.letter_one == b'A';
        self.flag |= is_a;
        self.letter_two = b'B';
    }

    /// P5: assignments of constants.
    #[inline(never)]
    fn p5(&mut self) {
        self.letter_one = b'A';
        self.flag = false;
    }

    /// P6: branches over the enumeration.
    #[inline(never)]
    fn p6(&mut self, choice: Ident) -> Ident {
        let kept = if f3(choice) { choice } else { Ident::Four };
        match choice {
            Ident::One => Ident::One,
            Ident::Two if self.number > 100 => Ident::One,
            Ident::Two => Ident::Four,
            Ident::Three => Ident::Two,
            Ident::Four => kept,
            Ident::Five => Ident::Three,
        }
    }

    /// P8: subscripts of arrays.
    #[inline(never)]
    fn p8(&mut self, first: i32, second: i32) {
        let at = usize::try_from(first + 5).unwrap_or(0);
        put(&mut self.row, at, second);
        put(&mut self.row, at + 1, second);
        put(&mut self.row, at + 30, first + 5);
        let moved = self.row.get(at).copied().unwrap_or(0);
        if let Some(row) = self.table.get_mut(at) {
            for column in at..=at + 1 {
                put(row, column, first + 5);
            }
            if let Some(value) = row.get_mut(at - 1) {
                *value = value.wrapping_add(1);
            }
        }
        if let Some(row) = self.table.get_mut(at + 20) {
            put(row, at, moved);
        }
        self.number = 5;
    }

    /// F1: compares two letters.
    #[inline(never)]
    fn f1(&mut self, one: u8, two: u8) -> Ident {
        if one == two {
            self.letter_one = one;
            return Ident::Two;
        }
        Ident::One
    }

    /// F2: compares two texts.
    #[inline(never)]
    fn f2(&mut self, one: &Text, two: &Text) -> bool {
        let letter = |text: &Text, at: usize| text.get(at).copied().unwrap_or(0);
        let (mut at, mut found) = (2, 0);
        while at <= 2 {
            if self.f1(letter(one, at), letter(two, at + 1)) == Ident::One {
                found = b'A';
                at += 1;
            } else {
                // Never reached with these texts, and Weicker's loop would not end here.
                at += 2;
            }
        }
        if (b'W'..b'Z').contains(&found) {
            at = 7;
        }
        if found == b'R' {
            return true;
        }
        if black_box(one) > black_box(two) {
            self.number = i32::try_from(at + 7).unwrap_or(0);
            return true;
        }
        false
    }
}

/// P7: a sum of parameters. The old value of the result is not used.
#[inline(never)]
fn p7(one: i32, two: i32, _result: i32) -> i32 {
    two + (one + 2)
}

/// F3: compares with a constant.
#[inline(never)]
fn f3(choice: Ident) -> bool {
    choice == Ident::Three
}

fn put(row: &mut [i32; ROW], at: usize, value: i32) {
    if let Some(place) = row.get_mut(at) {
        *place = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_variables_have_weickers_values_at_the_end() {
        let mut dhrystone = Dhrystone::new();
        assert!(!dhrystone.is_right(), "nothing has run");
        for passes in [1, 1, 1000] {
            dhrystone.run(passes);
            assert!(dhrystone.is_right(), "{dhrystone:?}");
        }
        assert_eq!([8, 9, 38].map(|at: usize| dhrystone.row[at]), [7, 7, 8]);
        assert_eq!([7, 8, 9].map(|at: usize| dhrystone.table[8][at]), [1002, 8, 8]);
        assert_eq!(dhrystone.table[28][8], 7);
    }

    #[test]
    fn a_wrong_value_is_noticed() {
        let mut dhrystone = Dhrystone::new();
        dhrystone.run(2);
        let spoil: [fn(&mut Dhrystone); 5] = [
            |it| it.passes += 1,
            |it| it.number = 6,
            |it| it.next.number = 17,
            |it| it.head.text[0] = b'X',
            |it| it.row[8] = 0,
        ];
        for spoil in spoil {
            let mut spoiled = dhrystone.clone();
            spoil(&mut spoiled);
            assert!(!spoiled.is_right());
        }
    }

    #[test]
    fn the_branches_follow_weickers_table() {
        use Ident::{Five, Four, One, Three, Two};
        let mut dhrystone = Dhrystone::new();
        assert_eq!([One, Two, Three, Four, Five].map(|one| dhrystone.p6(one)), [One, Four, Two, Four, Three]);
        dhrystone.number = 101;
        assert_eq!(dhrystone.p6(Two), One);
        assert_eq!(p7(6, 10, 0), 18);
        assert!(dhrystone.f2(&SECOND, &FIRST), "the first text is the later one");
        assert_eq!(dhrystone.number, 10);
    }
}
