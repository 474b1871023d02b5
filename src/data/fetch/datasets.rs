//! The public data sets that can be fetched: addresses, sizes and checksums.

use super::described::{Dataset, Derived, RemoteFile, file};
use super::g2p;

/// Every data set that can be fetched.
pub const DATASETS: [Dataset; 5] = [
    Dataset {
        name: "multi30k",
        about: "29000 image captions in English, German, French and Czech, with the usual test sets",
        licence: "non-commercial research and education (the terms of Flickr30K)",
        base_url: "https://raw.githubusercontent.com/\
                   multi30k/dataset/a3d2e0d26b56f3846f66a952536ffed4e401d05a/data/task1/raw",
        files: MULTI30K,
        derived: Derived::Nothing,
    },
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

const MULTI30K: &[RemoteFile<'static>] = &[
    file("test_2016_flickr.cs.gz", 22572, "200a4a74cc9560f051924abb9803be008d1908d77f747e9141aeb86dfd2797f1"),
    file("test_2016_flickr.de.gz", 22890, "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8"),
    file("test_2016_flickr.en.gz", 21077, "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9"),
    file("test_2016_flickr.fr.gz", 22310, "6d326e188d259fb1d04ac19eae3af956559b3a0b93d7635e56c90987c40c8b90"),
    file("test_2017_flickr.de.gz", 21471, "a2c89666db00c495cd8513b9d708d5a3acc205d7de312ef2bf5fb7ebc1540aee"),
    file("test_2017_flickr.en.gz", 19138, "76a444ee25172e72695cddb13ae4a3bda59430617be88e0bb46b60504f054074"),
    file("test_2017_flickr.fr.gz", 20434, "3ba671ceb2299f3304ffafefea7a833d08632fbaf0ba18546f8a2ec2391af496"),
    file("test_2017_mscoco.de.gz", 10230, "799e4854c25d601cb6cb6be29eabe5667734c61ace2f495e03e429031a0bc338"),
    file("test_2017_mscoco.en.gz", 8844, "aab300bfb4427697987e02cd0aacd44bfe8aa50456231b6474c08038bbed2b58"),
    file("test_2017_mscoco.fr.gz", 9751, "754f3072ba9f124569ba5258b32730fc1d214bbf8e0c6dfb2b74401676220db0"),
    file("train.cs.gz", 593827, "a65adb8b32e3bc664f21ecba7a6e7f6950fd1f405e135f7c312faabdb6255077"),
    file("train.de.gz", 637044, "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6"),
    file("train.en.gz", 568929, "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f"),
    file("train.fr.gz", 604242, "622e75069e9f4c577425c4f277116ce66e63a2401c0a2312d90073cb12379a3c"),
    file("val.cs.gz", 22096, "b63226e05c4bd5dd6a42897d74b86a1b9d2c31498252c572b1ea7f7996927fcc"),
    file("val.de.gz", 24681, "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a"),
    file("val.en.gz", 21650, "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28"),
    file("val.fr.gz", 23001, "ca3106f1a72390591d25f6c45cb4cd39dec4cd3f123e099748a3ce5256c160e9"),
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
