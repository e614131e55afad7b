//! LINPACK: a dense system of 100 linear equations is solved in double precision.
//!
//! Source: J. J. Dongarra, "Performance of Various Computers Using Standard Linear Equations Software": Gaussian elimination
//! by columns with partial pivoting, then substitution; the order 100 counts as 2/3 n^3 + 2 n^2 operations.

use std::hint::black_box;

/// The number of equations.
const ORDER: u16 = 100;
/// How many floating point operations the solution of one system counts as.
pub(super) const OPERATIONS: f64 = 2.0 / 3.0 * 1_000_000.0 + 2.0 * 10_000.0;
/// The largest error of a component of the solution, which is 1 for each. The system's condition is good enough for 1e-11.
const TOLERANCE: f64 = 1e-8;

/// A system of equations whose solution is 1 in each component, and the place in which the system is solved.
pub(super) struct Linpack {
    /// The columns of the matrix, and the right side as the last one.
    system: Vec<Vec<f64>>,
    work: Vec<Vec<f64>>,
}

impl Linpack {
    /// A system with coefficients between -0.5 and 0.5, always the same.
    pub(super) fn new() -> Self {
        let order = usize::from(ORDER);
        let mut seed = 1325_u32;
        let mut coefficient = || {
            // A multiplicative generator modulo 2^16, whose period of 16384 covers the matrix.
            seed = seed * 3125 % 65_536;
            f64::from(seed) / 65_536.0 - 0.5
        };
        let mut system: Vec<Vec<f64>> =
            (0..order).map(|_| (0..order).map(|_| coefficient()).collect()).collect();
        let rows = (0..order).map(|row| system.iter().filter_map(|column| column.get(row)).sum()).collect();
        system.push(rows);
        Self { work: system.clone(), system }
    }

    /// Solves the system once. Returns whether the solution is right. Copying the system first takes about 2 % of the time.
    pub(super) fn run(&mut self) -> bool {
        self.work.clone_from(black_box(&self.system));
        let solution = solve(&mut self.work);
        black_box(solution).is_some_and(|solution| {
            solution.len() == usize::from(ORDER) && solution.iter().all(|one| (one - 1.0).abs() < TOLERANCE)
        })
    }
}

/// Solves the system of these columns, of which the last is the right side. `None` if the matrix is singular. The columns
/// hold the triangular matrices afterwards.
fn solve(columns: &mut [Vec<f64>]) -> Option<&[f64]> {
    eliminate(columns)?;
    let (right, matrix) = columns.split_last_mut()?;
    // From the last unknown to the first: each, once known, is taken off the right sides above.
    for (row, column) in matrix.iter().enumerate().rev() {
        let known = right.get(row)? / column.get(row)?;
        *right.get_mut(row)? = known;
        add(right.get_mut(..row)?, -known, column.get(..row)?);
    }
    Some(right)
}

/// Brings the matrix into triangular form by row operations, and does the same to the right side.
fn eliminate(columns: &mut [Vec<f64>]) -> Option<()> {
    let mut rest = columns;
    let mut row = 0;
    while let Some((pivots, others)) = rest.split_first_mut().filter(|(_, others)| !others.is_empty()) {
        let chosen = row + largest(pivots.get(row..)?)?;
        pivots.swap(row, chosen);
        let pivot = *pivots.get(row)?;
        if pivot == 0.0 {
            return None;
        }
        let factors = pivots.get_mut(row + 1..)?;
        for factor in factors.iter_mut() {
            *factor /= -pivot;
        }
        for column in others.iter_mut() {
            column.swap(row, chosen);
            let multiple = *column.get(row)?;
            add(column.get_mut(row + 1..)?, multiple, factors);
        }
        row += 1;
        rest = others;
    }
    Some(())
}

/// Adds a multiple of one vector to another: the loop in which LINPACK spends its time.
fn add(to: &mut [f64], multiple: f64, of: &[f64]) {
    for (to, of) in to.iter_mut().zip(of) {
        *to += multiple * of;
    }
}

/// The index of the component with the largest absolute value.
fn largest(vector: &[f64]) -> Option<usize> {
    let by_size = |one: &(usize, &f64), two: &(usize, &f64)| one.1.abs().total_cmp(&two.1.abs());
    vector.iter().enumerate().max_by(by_size).map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_residual_of_the_solution_is_small() {
        let linpack = Linpack::new();
        let mut work = linpack.system.clone();
        let solution = solve(&mut work).unwrap();
        let (right, matrix) = linpack.system.split_last().unwrap();
        let residual = (0..usize::from(ORDER)).map(|row| {
            let left: f64 = matrix.iter().zip(solution).map(|(column, x)| column[row] * x).sum();
            (left - right[row]).abs()
        });
        let residual = residual.fold(0.0, f64::max);
        assert!(residual < 1e-12 * f64::from(ORDER), "{residual}");
        assert!(solution.iter().all(|x| (x - 1.0).abs() < 1e-10), "{solution:?}");
    }

    #[test]
    fn small_systems_are_solved_exactly() {
        // Columns, then the right side. The second needs an exchange of rows; the third is singular.
        for (mut columns, expected) in [
            (vec![vec![2.0, 0.0], vec![1.0, 4.0], vec![5.0, 12.0]], Some(vec![1.0, 3.0])),
            (vec![vec![0.0, 2.0], vec![1.0, 0.0], vec![3.0, 4.0]], Some(vec![2.0, 3.0])),
            (vec![vec![1.0, 2.0], vec![2.0, 4.0], vec![1.0, 1.0]], None),
        ] {
            assert_eq!(solve(&mut columns).map(<[f64]>::to_vec), expected);
        }
    }

    #[test]
    fn a_run_notices_a_wrong_system() {
        let mut linpack = Linpack::new();
        assert!(linpack.run() && linpack.run(), "a run leaves the system as it was");
        linpack.system[3][4] += 0.001;
        assert!(!linpack.run());
    }
}
