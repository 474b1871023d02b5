//! Weights in another form, for decoding: in panels, which are read from beginning to end, or in 8 bits.

use crate::kernels::machine::Threads;
use crate::kernels::matrix::Matrix;
use crate::kernels::product::{Int8Matrix, Packed, new_product};
use burn::module::ParamId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The matrices of a loaded model in the form in which they are multiplied, each made once. Whoever owns the model owns them; they
/// hold as long as its parameters stay as they are.
#[derive(Debug, Default)]
pub struct PreparedWeights {
    int8: HashMap<ParamId, Arc<Int8Matrix>>,
    panels: Mutex<HashMap<ParamId, Panels>>,
}

/// Room for a matrix in panels.
type Panels = Arc<OnceLock<Packed>>;

/// The matrix of one parameter.
#[derive(Clone, Debug)]
pub enum PreparedWeight {
    /// In panels, which are made when several rows are first multiplied with them.
    Panels(Panels),
    /// In 8 bits.
    Int8(Arc<Int8Matrix>),
}

impl PreparedWeights {
    /// Adds a matrix in 8 bits.
    pub fn insert(&mut self, id: ParamId, matrix: Int8Matrix) {
        self.int8.insert(id, Arc::new(matrix));
    }

    /// The matrix of a parameter.
    pub fn get(&self, id: ParamId) -> PreparedWeight {
        if let Some(matrix) = self.int8.get(&id) {
            return PreparedWeight::Int8(matrix.clone());
        }
        // A panic elsewhere leaves the map as it was.
        let mut panels = self.panels.lock().unwrap_or_else(PoisonError::into_inner);
        PreparedWeight::Panels(panels.entry(id).or_default().clone())
    }
}

/// Rows from which on panels are worth making: one row is multiplied as fast with a matrix as it lies.
const PANEL_ROWS: usize = 2;

/// `x W` in new memory, with `W` as it is prepared.
pub(super) fn prepared_product(x: Matrix, weight: Matrix, prepared: Option<&PreparedWeight>) -> Vec<f32> {
    match prepared {
        Some(PreparedWeight::Int8(matrix)) => match x.contiguous() {
            Some(x) => matrix.product(x, None),
            None => matrix.product(&x.to_vec(), None),
        },
        Some(PreparedWeight::Panels(panels)) if x.n_rows() >= PANEL_ROWS => packed(panels, weight).new_product(x),
        _ => new_product(x, weight, Threads::All),
    }
}

/// The matrix in panels, made if it is not yet.
///
/// Not in `get_or_init`: making panels waits for other threads of the pool, and a thread that waits takes up other work, such as
/// another search that needs this very matrix, which would then wait for itself. Two searches may both make it, which costs a moment.
fn packed<'a>(panels: &'a Panels, weight: Matrix) -> &'a Packed {
    if panels.get().is_none() {
        let _ = panels.set(Packed::new(weight));
    }
    panels.get().expect("it has just been set")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    /// A search that comes while another makes the panels of both: a thread that waits for a part of them takes it up.
    #[test]
    fn searches_that_need_the_same_matrix_all_end() {
        let (sender, done) = mpsc::channel();
        std::thread::spawn(move || {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
            let (x, weight) = (vec![1.0; 2 * 512], vec![1.0; 512 * 8192]);
            for _ in 0..30 {
                let prepared = PreparedWeights::default().get(ParamId::new());
                let (x, weight) = (Matrix::new(&x, 2, 512), Matrix::new(&weight, 512, 8192));
                let search = || prepared_product(x, weight, Some(&prepared));
                pool.in_place_scope(|scope| {
                    scope.spawn(|_| assert_eq!(search()[0], 512.0));
                    std::thread::sleep(Duration::from_micros(300));
                    (0..8).for_each(|_| scope.spawn(|_| assert_eq!(search()[0], 512.0)));
                });
            }
            sender.send(()).unwrap();
        });
        done.recv_timeout(Duration::from_secs(60)).expect("no search waits for itself");
    }
}
