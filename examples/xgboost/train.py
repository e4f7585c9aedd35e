"""Cross-validate XGBoost's classifier on the breast cancer data and print its log loss."""
import argparse

from sklearn.datasets import load_breast_cancer
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from xgboost import XGBClassifier

# The defaults are those of XGBoost.
parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--n-estimators", type=int, default=100)
parser.add_argument("--learning-rate", type=float, default=0.3)
parser.add_argument("--max-depth", type=int, default=6)
parser.add_argument("--min-child-weight", type=float, default=1)
parser.add_argument("--subsample", type=float, default=1)
parser.add_argument("--colsample-bytree", type=float, default=1)
parser.add_argument("--reg-lambda", type=float, default=1)
args = parser.parse_args()

x, y = load_breast_cancer(return_X_y=True)
folds = StratifiedKFold(5, shuffle=True, random_state=0)
model = XGBClassifier(**vars(args), n_jobs=1, random_state=0)
probabilities = cross_val_predict(model, x, y, cv=folds, method="predict_proba")
print(f"log_loss={log_loss(y, probabilities):.6f}")
