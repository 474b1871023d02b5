//! Where the tokens of a sequence stand.

/// Rising positions: one after the other, or drawn from a longer range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Places {
    /// The positions `offset, offset + 1, ...` of `len` tokens; the keys that they see begin at 0.
    Following {
        /// The first.
        offset: usize,
        /// How many.
        len: usize,
    },
    /// Randomised positions: a sorted sample without repetition, of queries and keys alike.
    ///
    /// A model that is trained on short sequences with the positions of long ones knows those when it meets them: what it can learn
    /// is the order of positions, and not how far apart they are.
    ///
    /// # Reference
    /// Ruoss et al., Randomized Positional Encodings Boost Length Generalization of Transformers, 2023, section 3. **Differs from
    /// the paper:** positions are drawn in training alone. Outside of it a token's position must be known before the length is,
    /// since a decoder goes on word by word, so that they follow each other there; and so that this is learnt too, the range that is
    /// drawn from is itself drawn, from the length of the sequence up to the whole.
    Drawn(Vec<usize>),
}

impl Places {
    /// How many tokens there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Following { len, .. } => *len,
            Self::Drawn(positions) => positions.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many keys they see, themselves included.
    pub fn key_len(&self) -> usize {
        match self {
            Self::Following { offset, len } => offset + len,
            Self::Drawn(positions) => positions.len(),
        }
    }

    /// The positions.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        let (following, drawn) = match self {
            Self::Following { offset, len } => (*offset..offset + len, &[][..]),
            Self::Drawn(positions) => (0..0, positions.as_slice()),
        };
        following.chain(drawn.iter().copied())
    }

    /// The shortest table that has `value(key - query)` for every query and every key that it sees, row-major, and its shape: a value
    /// for each distance, `[1, len + key_len - 1]`, from the last query's to the first key on, where positions follow each other;
    /// otherwise one for each pair, `[len, key_len]`.
    pub(super) fn table<T: Copy>(&self, value: impl Fn(i64) -> T) -> (Vec<T>, [usize; 2]) {
        match self {
            Self::Following { len, .. } => {
                let (len, key_len) = (*len as i64, self.key_len() as i64);
                let values: Vec<T> = (1 - key_len..len).map(value).collect();
                let n = values.len();
                (values, [1, n])
            }
            Self::Drawn(positions) => {
                let of_query = |query: &usize| {
                    let query = *query as i64;
                    positions.iter().map(move |key| *key as i64 - query)
                };
                let values = positions.iter().flat_map(of_query).map(value).collect();
                (values, [positions.len(), positions.len()])
            }
        }
    }

    /// `value(key - query)` for every query and every key that it sees, row-major `[len, key_len]`.
    pub(super) fn by_pair<T: Copy>(&self, value: impl Fn(i64) -> T) -> Vec<T> {
        let (values, _) = self.table(value);
        match self {
            Self::Following { len, .. } => {
                let key_len = self.key_len();
                (0..*len).flat_map(|query| values[len - 1 - query..][..key_len].iter().copied()).collect()
            }
            Self::Drawn(_) => values,
        }
    }
}
