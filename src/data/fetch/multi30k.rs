//! Multi30k (Elliott et al. 2016, 2017; Barrault et al. 2018): as it was written, and as most papers score it.

use super::described::{Dataset, Derived, RemoteFile, file};

pub(super) const RAW: Dataset = Dataset {
    name: "multi30k",
    about: "29000 image captions in English, German, French and Czech, with the usual test sets",
    licence: LICENCE,
    base_url: "https://raw.githubusercontent.com/\
               multi30k/dataset/a3d2e0d26b56f3846f66a952536ffed4e401d05a/data/task1/raw",
    files: RAW_FILES,
    derived: Derived::Nothing,
};

pub(super) const TOKENIZED: Dataset = Dataset {
    name: "multi30k-tokenized",
    about: "the same captions in lower case, with Moses' tokens: what most published BLEU scores are of",
    licence: LICENCE,
    base_url: "https://raw.githubusercontent.com/\
               multi30k/dataset/a3d2e0d26b56f3846f66a952536ffed4e401d05a/data/task1/tok",
    files: TOKENIZED_FILES,
    derived: Derived::Nothing,
};

const LICENCE: &str = "non-commercial research and education (the terms of Flickr30K)";

const RAW_FILES: &[RemoteFile<'static>] = &[
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

const TOKENIZED_FILES: &[RemoteFile<'static>] = &[
    file("test_2016_flickr.lc.norm.tok.cs", 63566, "748c8816de928732365176e5c5d2f9bbabcec9b8d4448fba2d230feb057898a7"),
    file("test_2016_flickr.lc.norm.tok.de", 71917, "c6a33d39d48f9f510de147651316cd9d918e09ad0219df734a2f16b6baccacc4"),
    file("test_2016_flickr.lc.norm.tok.en", 63307, "5b7f32627cf99eced828311b955dae9800bb52bc8b91cf8b6526829e605b29d2"),
    file("test_2016_flickr.lc.norm.tok.fr", 76394, "1463bd5960f9bfe098ec3cd752d3df0c49c84dc646fb518964a29232658cd836"),
    file("test_2017_flickr.lc.norm.tok.de", 65228, "02067e4a9402786a4fcb8c1b6f4307e4a5073ced64800abead5273b54f5f31f6"),
    file("test_2017_flickr.lc.norm.tok.en", 56123, "c9d1dfd7a26add989382e534af235af9f0f658b2a30e7eb0efdaf142496ee54f"),
    file("test_2017_flickr.lc.norm.tok.fr", 69537, "c0583117a47b31e8a6c6a97cfe8de153e462074668f4e994764fcc80b21d33b4"),
    file("test_2017_mscoco.lc.norm.tok.de", 30464, "e2825990b8a4e5289d2cdba801d57c187810bab9b4f5d87a30c35800a0d871b6"),
    file("test_2017_mscoco.lc.norm.tok.en", 25380, "fe69ae004d71c42ead0301e70c57de5b1b6b5fb7f52210d42b22801e98e656f3"),
    file("test_2017_mscoco.lc.norm.tok.fr", 31725, "0b6a4620f02b6b9acf7811fda23f90fed9c6baa0b96aa224db50a273078c84d1"),
    file("train.lc.norm.tok.cs", 1791955, "7645fb91efa18f94c83d493f740a5d5a941e4b01efa6a124bf2d4af040e133e0"),
    file("train.lc.norm.tok.de", 2150008, "cb5a23529b65ec2061f1dc446192a9c37382b63cc75f81a0be59d34894b3a505"),
    file("train.lc.norm.tok.en", 1837696, "08925f8e0572bcd5a006702fc5fe20e2d77c6917d4eebd576fc20de6693c2119"),
    file("train.lc.norm.tok.fr", 2235588, "8fa41bb718412bcb7c5dfa58603842810a01543eae86a51279f9886b901266e1"),
    file("val.lc.norm.tok.cs", 61492, "b87ee4917f4a0f9ca6cca03e402026c9f4437dc1bd6a7dadfd2544ecfb6c5501"),
    file("val.lc.norm.tok.de", 77273, "97232bd273eceb7207f689527386a97e4be2616b18ada47576bdaf96c8ae1f00"),
    file("val.lc.norm.tok.en", 64608, "46573ce391ae227f1c72f873392436a20ef18e0a6d518098cfbd70b77c8572ec"),
    file("val.lc.norm.tok.fr", 78242, "b303e301aa21fe7822a846b2b3fb2d5a1121ec807cd5b1d006fb7b2b5507168a"),
];
