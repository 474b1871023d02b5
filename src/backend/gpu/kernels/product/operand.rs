//! A factor as it lies in memory.

use super::kernel::FactorLaunch;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;

/// Matrices of one size, each as far from the one before.
#[derive(Clone, Debug)]
pub(super) struct Operand {
    pub tensor: CubeTensor,
    pub n_matrices: usize,
    pub n_rows: usize,
    pub n_columns: usize,
    /// Whether neighbours in memory are neighbours in a row; else they are in a column.
    pub has_rows: bool,
    /// From one row to the next, or from one column.
    pub step: usize,
    /// From one matrix to the next; zero if there is one.
    pub step_of_matrix: usize,
}

impl Operand {
    /// A tensor as it lies, or a copy where that is neither in rows nor in columns.
    pub fn new(tensor: CubeTensor) -> Self {
        let as_it_lies = |tensor: &CubeTensor| -> Option<Self> {
            let (shape, strides) = (tensor.meta.shape(), tensor.meta.strides());
            let rank = shape.len();
            let (n_rows, n_columns) = (shape[rank - 2], shape[rank - 1]);
            // Along an axis of one element a distance says nothing.
            let (has_rows, step) = match (strides[rank - 2], strides[rank - 1]) {
                (step, of_column) if of_column == 1 || n_columns == 1 => (true, step),
                (of_row, step) if of_row == 1 || n_rows == 1 => (false, step),
                _ => return None,
            };
            let (mut n_matrices, mut step_of_matrix) = (1, 0);
            for axis in (0..rank - 2).rev().filter(|axis| shape[*axis] != 1) {
                if n_matrices == 1 {
                    step_of_matrix = strides[axis];
                } else if strides[axis] != n_matrices * step_of_matrix {
                    return None;
                }
                n_matrices *= shape[axis];
            }
            Some(Self { tensor: tensor.clone(), n_matrices, n_rows, n_columns, has_rows, step, step_of_matrix })
        };
        as_it_lies(&tensor)
            .unwrap_or_else(|| as_it_lies(&into_contiguous(tensor)).expect("what is contiguous lies in rows"))
    }

    /// It as the argument of a kernel that takes so many rows or columns of it.
    pub fn factor(self, n: usize) -> FactorLaunch {
        FactorLaunch::new(self.tensor.into_buffer_arg(), n, self.step, self.step_of_matrix)
    }

    /// All matrices as one, one below the other, if that is how they lie.
    pub fn merged(self) -> Self {
        let Self { n_matrices, n_rows, step, step_of_matrix, .. } = self;
        let has_one = n_rows == 1;
        match self.has_rows && n_matrices > 1 && (has_one || step_of_matrix == n_rows * step) {
            true => {
                let step = if has_one { step_of_matrix } else { step };
                Self { n_rows: n_matrices * n_rows, n_matrices: 1, step, step_of_matrix: 0, ..self }
            }
            false => self,
        }
    }
}
