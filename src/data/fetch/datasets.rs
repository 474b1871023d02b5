//! The public data sets that can be fetched: addresses, sizes and checksums.

use super::described::{Dataset, Derived, RemoteFile, file};
use super::{g2p, multi30k};

/// Every data set that can be fetched.
pub const DATASETS: [Dataset; 6] = [
    multi30k::RAW,
    multi30k::TOKENIZED,
    Dataset {
        name: "tatoeba-en-fr",
        about: "167130 short English-French sentence pairs of Tatoeba, as selected by ManyThings.org in 2019",
        licence: "CC BY 2.0 (www.manythings.org/anki and tatoeba.org)",
        base_url: "https://raw.githubusercontent.com/modelexlab/data/adddaf33ac35572bcfeb421efec29435e7ea9332",
        files: TATOEBA,
        derived: Derived::Splits { from: "fra.txt", per_mille: 10 },
    },
    Dataset {
        name: "scan",
        about: "20910 navigation commands and their action sequences, with splits that ask for generalisation",
        licence: "BSD, 3 clauses",
        base_url: "https://raw.githubusercontent.com/brendenlake/SCAN/c4b756cbc010d75c912f16c42c8f15dc6b7e6c8f",
        files: SCAN,
        derived: Derived::ScanTsv,
    },
    g2p::CMUDICT,
    g2p::SIGMORPHON,
];

const TATOEBA: &[RemoteFile<'static>] = &[RemoteFile {
    path: "fra-eng.zip",
    member: Some("fra.txt"),
    name: "fra.txt",
    bytes: 11669748,
    sha256: "0bb85dbaa1c896844649094d7eaf2e34bee34e84fe362b26ce7e8f2e12aae104",
}];

const SCAN: &[RemoteFile<'static>] = &[
    file("LICENSE", 1532, "5caff9408d400e1d9b271bf48b967154cdf6a37c16c965f91775da3af9291f67"),
    file("tasks.txt", 4080388, "d824c7d9e9149ba497e25f701981dac79954e04bf670d22e5c209f076ac6c89f"),
    file(
        "simple_split/tasks_train_simple.txt",
        3267938,
        "941bb8a088c5f53ceff12fde902dc008933cf0c4203cc672c47b5f79d73262dd",
    ),
    file(
        "simple_split/tasks_test_simple.txt",
        812450,
        "1fe1c8f5a19d0dc40e41bab94278f45f66f3dc415a978bd29855a23440610fc6",
    ),
    file(
        "length_split/tasks_train_length.txt",
        2723418,
        "b034212dc7cf87ce62f3a067dd6ad49c4d5cd18d51d615d13825516bcb1ebbc2",
    ),
    file(
        "length_split/tasks_test_length.txt",
        1356970,
        "0760752ed34a75116ae11dcc1ee17526b7500060da1366540730fa24894d7db3",
    ),
    file(
        "add_prim_split/tasks_train_addprim_jump.txt",
        2579619,
        "e3c78485692e028eed4205e1b8b3fd0e785ef2c12d45b5b89204dadf5b239e23",
    ),
    file(
        "add_prim_split/tasks_test_addprim_jump.txt",
        1531555,
        "8147ae2651422c701162e174d9d66158daa57858a26b30317ac61797118ac7a5",
    ),
    file(
        "add_prim_split/tasks_train_addprim_turn_left.txt",
        3974537,
        "1b3fed86055dd7689d217f1b90cc8960aeb1cf200f4f209dc47935761b05304c",
    ),
    file(
        "add_prim_split/tasks_test_addprim_turn_left.txt",
        173679,
        "15a82c2d25ac7c3c1fff7e18051fb085974ef3617de895c520d02144396a10e2",
    ),
];
