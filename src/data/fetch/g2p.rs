//! Data sets of words and their pronunciations.

use super::described::{Dataset, Derived, RemoteFile, file};

pub(super) const CMUDICT: Dataset = Dataset {
    name: "cmudict",
    about: "126052 English words with 135164 pronunciations: the CMU Pronouncing Dictionary",
    licence: "BSD style, 2 clauses",
    base_url: "https://raw.githubusercontent.com/cmusphinx/cmudict/0f8072f814306c5ee4fbf992ed853601b12c01f9",
    files: &[
        file("LICENSE", 1754, "bd4ce8e44170a5f9f481310ca85c51de3c4f851a65e679b40e603b143bd3542a"),
        file("cmudict.dict", 3618488, "81917843c7f44ce2b094ac63873c2c7a4cf802040792c455ba3ca406891c3d22"),
    ],
    derived: Derived::Pronunciations { from: "cmudict.dict", per_mille: 50 },
};

pub(super) const SIGMORPHON: Dataset = Dataset {
    name: "sigmorphon2021-g2p",
    about: "words and phones of 11 languages with official splits: SIGMORPHON 2021, shared task 1",
    licence: "CC BY-SA 3.0",
    base_url: "https://raw.githubusercontent.com/\
               sigmorphon/2021-task1/821bcdece5a47820872215969f275004b0abe80c/data",
    files: LANGUAGES,
    derived: Derived::Nothing,
};

const LANGUAGES: &[RemoteFile<'static>] = &[
    file("high/eng_us_train.tsv", 855780, "bbe76f57ee799ef9094b1ed1fecf8861e754ac57c6aa4db7d5b18892c5401f7f"),
    file("high/eng_us_dev.tsv", 107622, "dcce99504c5f8a00ebf13499aa4d4c2b7fc37614b65127c98aa871855e77080e"),
    file("high/eng_us_test.tsv", 107213, "726192932a69a7197348ee64898613e94968234ce426cfc67d984baf5ddd317c"),
    file("medium/arm_e_train.tsv", 273177, "2cfc0ded02151377cb6fa25cae112acb7f3c0d1d92d5479de19799687b0be8d2"),
    file("medium/arm_e_dev.tsv", 34999, "151b26dd407836cbaea4110018a2090e6d627cb98ca5febcfe29bb48bec3bff1"),
    file("medium/arm_e_test.tsv", 34311, "4b2301ef999b9f63d71b05825002a015ef4ce62b1dd56de924c78f237ebb5545"),
    file("medium/bul_train.tsv", 332375, "a0ad49ef705339bf7d7a301cf97cd33a5ab72743b4367914abe42c18ee835170"),
    file("medium/bul_dev.tsv", 41920, "f503124b83dff9ff2f248f39374bf7b8f93a915dafdee6c72f15f7bdf4317d01"),
    file("medium/bul_test.tsv", 41674, "b4a7d382bf94ca5f1b8e5d6c03f567b5837eb5272da67fab8aef1dcfe967450b"),
    file("medium/dut_train.tsv", 211071, "08d327412cbf809a4cf894e015975d91588a38e8e05fb86450f42a4a38e534b8"),
    file("medium/dut_dev.tsv", 26360, "77a896e9510b6ebc610a9bc6a1bf32a06bc85489e9056caf77d996bb107318aa"),
    file("medium/dut_test.tsv", 25992, "eb31a13e8f797f1bda23194689805c8ea0cd6960e86f739d1e818f1815c287ae"),
    file("medium/fre_train.tsv", 182424, "e9de4f5125d2478e50506c5ed278f69d5fb17d8d213f99f845305c24e28a55c2"),
    file("medium/fre_dev.tsv", 22895, "3b42f14f318367dd94faa6d59e8fafabd845a3998800b6ce71a7c67e999490da"),
    file("medium/fre_test.tsv", 23087, "6202c2b7b8d5fbd76a4d40373f9564a9946671dab617438b534bd47c64071c92"),
    file("medium/geo_train.tsv", 357273, "0369d37ddd994ad7366f3c0bfd314d80f2e80f1795c5b461e76344f188944635"),
    file("medium/geo_dev.tsv", 44776, "4a4127d579219a6a7a2079fef950c94543aa022ede1847b753c9e305c1f9e10f"),
    file("medium/geo_test.tsv", 44658, "5f4ac16ace1fdb046ed9dbd99068d0bcfeed278f8c80cb91697ca7ef88c8f2d5"),
    file("medium/hbs_latn_train.tsv", 216303, "b4bf802445c2de3db73e20c2d6c51868e6c66ddb7abc64f5398469cf5c54e9c5"),
    file("medium/hbs_latn_dev.tsv", 27164, "38b3ab21d522b0553e97d62784287cf62e29460360bec8f20b32bbb47b2a7cbc"),
    file("medium/hbs_latn_test.tsv", 27109, "8d0bdc358b35ccaf1cc2068b5304d92a90768c7ac608c2bba8d632e90bfaffd8"),
    file("medium/hun_train.tsv", 226536, "cd6bea5ae552bc73a63abf459af5f41d27c1c276b4a15de49f1fffd23ee4d363"),
    file("medium/hun_dev.tsv", 28113, "a2892c27cf6d3075aacdd195c02bf34f8b509bcc08bb230b758d7978a7d920d0"),
    file("medium/hun_test.tsv", 28355, "e9ec4ba9c89808864e6518e529e21cda6fe51287ad7a5a1fc23668cc64f31159"),
    file("medium/jpn_hira_train.tsv", 306757, "caf113a16654dc778352c8c95867922fb0aa994c484b318f5aea66dc561ea85a"),
    file("medium/jpn_hira_dev.tsv", 38506, "f3f2f36db83b48032767dcf49c536a0e50fa076e48865fa75638262818c4ef70"),
    file("medium/jpn_hira_test.tsv", 38180, "d004af19a5f200303dee48f7399034bcfc1edbd9b750bee8f19f8cb0daf9a7f6"),
    file("medium/kor_train.tsv", 248512, "0623be3d687864b534043585e50b1ac238b7d5564f1e7450b40be3df7329ff7c"),
    file("medium/kor_dev.tsv", 31598, "b1d22601f9b485f9b693dd82d832cb18695edb8a6a6ec6353d16ad729409b839"),
    file("medium/kor_test.tsv", 30798, "341c4691b635f300822f89334d774023702eb64bf3d827562da25862de699ff2"),
    file("medium/vie_hanoi_train.tsv", 281678, "8f2a60af78668db3c2c4d201938a822d7fc7808ffd64b12504723f3ff64fea4c"),
    file("medium/vie_hanoi_dev.tsv", 35905, "5d56e7d14dc4d90758d2d4ba0c74f3531b4e05b5344346786e2a1b1b447093ca"),
    file("medium/vie_hanoi_test.tsv", 34975, "ed555cb71d164b1be52e72b5bd398fe5a787e1a598418498b67dcb1ab6fb439e"),
];
