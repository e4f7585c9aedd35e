"""Train a support vector machine on handwritten digits and print its error."""
import argparse

from sklearn.datasets import load_digits
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--C", type=float, default=1.0, help="inverse regularisation strength")
parser.add_argument("--gamma", type=float, default=0.001, help="width of the kernel")
parser.add_argument("--kernel", choices=["rbf", "poly"], default="rbf")
parser.add_argument("--degree", type=int, default=3, help="degree of the poly kernel")
args = parser.parse_args()

images, labels = load_digits(return_X_y=True)
model = SVC(C=args.C, gamma=args.gamma, kernel=args.kernel, degree=args.degree)
accuracy = cross_val_score(model, images, labels, cv=3).mean()
print(f"finished: val_err={1 - accuracy:.5f}")
