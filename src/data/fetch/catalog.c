/* Where public sets are. A digest stands here only where it is published or agreed on widely;
 * otherwise the digest of the first fetch is what later ones are held to. Nothing is copied or
 * served by Basin, and each set's licence is its source's. */
#include "data/fetch/catalog.h"

#include <stddef.h>
#include <string.h>

#define TU(set)                                                                                    \
    {                                                                                              \
        { "https://www.chrsmrrs.com/graphkerneldatasets/" set ".zip", set ".zip", 0, NULL, NULL }  \
    }
#define MNIST(file, size, sha)                                                                     \
    { "https://storage.googleapis.com/cvdf-datasets/mnist/" file, file, size, sha, NULL }

const basin_catalog_set basin_catalog[] = {
    {"amazon",
     "reviewers of musical instruments, three relations, 11,944 nodes (CARE-GNN)",
     NULL,
     {"Amazon.mat", 3305},
     {{"https://data.dgl.ai/dataset/FraudAmazon.zip", "FraudAmazon.zip", 0, NULL, "Amazon.mat"}}},
    {"yelp",
     "reviews of hotels and restaurants, three relations, 45,954 nodes (CARE-GNN)",
     NULL,
     {"YelpChi.mat", 0},
     {{"https://data.dgl.ai/dataset/FraudYelp.zip", "FraudYelp.zip", 0, NULL, "YelpChi.mat"}}},
    {"tfinance",
     "accounts and transactions, 39,357 nodes, 21 million edges (BWGNN)",
     "https://drive.google.com/drive/folders/1PpNwvZx_YRSCDiHaBUmRIS3x1rZR7fMr",
     {"tfinance", 0},
     {{0}}},
    {"tsocial",
     "accounts and friendships, 5.8 million nodes, 73 million edges (BWGNN)",
     "https://drive.google.com/drive/folders/1PpNwvZx_YRSCDiHaBUmRIS3x1rZR7fMr",
     {"tsocial", 0},
     {{0}}},
    {"tolokers",
     "crowd workers, 11,758 nodes, ten splits (heterophilous graphs)",
     NULL,
     {"tolokers.npz", 0},
     {{"https://github.com/yandex-research/heterophilous-graphs/raw/main/data/tolokers.npz",
       "tolokers.npz", 0, NULL, NULL}}},
    {"questions",
     "users of a question site, 48,921 nodes, ten splits (heterophilous graphs)",
     NULL,
     {"questions.npz", 0},
     {{"https://github.com/yandex-research/heterophilous-graphs/raw/main/data/questions.npz",
       "questions.npz", 0, NULL, NULL}}},
    {"mutag", "188 molecules (TUDataset)", NULL, {0}, TU("MUTAG")},
    {"enzymes", "600 proteins in six classes (TUDataset)", NULL, {0}, TU("ENZYMES")},
    {"proteins", "1,113 proteins (TUDataset)", NULL, {0}, TU("PROTEINS")},
    {"dd", "1,178 large proteins (TUDataset)", NULL, {0}, TU("DD")},
    {"nci1", "4,110 molecules (TUDataset)", NULL, {0}, TU("NCI1")},
    {"nci109", "4,127 molecules (TUDataset)", NULL, {0}, TU("NCI109")},
    {"mutagenicity", "4,337 molecules (TUDataset)", NULL, {0}, TU("Mutagenicity")},
    {"frankenstein",
     "4,337 molecules with 780 features (TUDataset)",
     NULL,
     {0},
     TU("FRANKENSTEIN")},
    {"mnist",
     "70,000 handwritten digits",
     NULL,
     {0},
     {MNIST("train-images-idx3-ubyte.gz", 9912422,
            "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"),
      MNIST("train-labels-idx1-ubyte.gz", 28881,
            "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
      MNIST("t10k-images-idx3-ubyte.gz", 1648877,
            "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"),
      MNIST("t10k-labels-idx1-ubyte.gz", 4542,
            "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6")}},
    {"cifar10",
     "60,000 small photographs in ten classes",
     NULL,
     {0},
     {{"https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz", "cifar-10-binary.tar.gz",
       170052171, "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd", NULL}}},
    {NULL, NULL, NULL, {0}, {{0}}},
};

const basin_catalog_set *basin_catalog_find(const char *name) {
    for (const basin_catalog_set *set = basin_catalog; set->name; set++)
        if (!strcmp(set->name, name)) return set;
    return NULL;
}
