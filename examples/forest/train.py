"""Train a random forest on handwritten digits, and print its error and its size."""
import argparse
import pickle

from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_score

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--trees", type=int, default=100)
parser.add_argument("--depth", type=int, default=None, help="largest depth of a tree; as deep as it gets without one")
parser.add_argument("--leaf", type=int, default=1, help="fewest samples of a leaf")
parser.add_argument("--features", type=float, default=None, help="share of the features that a split looks at; by default their root")
parser.add_argument("--criterion", choices=["gini", "entropy"], default="gini")
args = parser.parse_args()

images, labels = load_digits(return_X_y=True)
forest = RandomForestClassifier(
    args.trees, max_depth=args.depth, min_samples_leaf=args.leaf, max_features=args.features or "sqrt",
    criterion=args.criterion, random_state=0,
)
error = 1 - cross_val_score(forest, images, labels, cv=3).mean()
size = len(pickle.dumps(forest.fit(images, labels)))
print(f"finished: error={error:.5f} kilobytes={size / 1000:.1f}")
