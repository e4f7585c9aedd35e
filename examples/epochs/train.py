"""Train a small network on handwritten digits and print its error after each epoch."""
import argparse
import warnings

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--hidden", type=int, default=64, help="hidden units")
parser.add_argument("--lr", type=float, default=0.001, help="learning rate")
parser.add_argument("--alpha", type=float, default=0.0001, help="L2 regularisation")
parser.add_argument("--batch", type=int, default=32, help="batch size")
parser.add_argument("--epochs", type=int, default=27)
args = parser.parse_args()

warnings.simplefilter("ignore")
images, labels = load_digits(return_X_y=True)
x, x_val, y, y_val = train_test_split(images / 16, labels, test_size=0.3, random_state=0)
network = MLPClassifier(
    hidden_layer_sizes=(args.hidden,), solver="sgd", learning_rate_init=args.lr,
    alpha=args.alpha, batch_size=args.batch, random_state=0,
)
for epoch in range(1, args.epochs + 1):
    network.partial_fit(x, y, classes=range(10))
    print(f"epoch {epoch}: val_err={1 - network.score(x_val, y_val):.5f}", flush=True)
