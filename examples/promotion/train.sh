# usage: sh train.sh RATE EPOCHS
# Gradient descent on (w - 3)^2 from w = 0. It goes on from the checkpoint of the trial at the
# level below, so that it runs only the epochs that are missing.
rate=$1 epochs=$2 state=$FANTASIA_CHECKPOINT_DIR/state
epoch=0 w=0
if [ -s "$state" ]; then
  read -r epoch w < "$state"
fi
while [ "$epoch" -lt "$epochs" ]; do
  w=$(awk "BEGIN { printf \"%.9f\", $w - $rate * 2 * ($w - 3) }")
  epoch=$((epoch + 1))
  echo "$epoch $w" > "$state.new" && mv "$state.new" "$state"
  awk "BEGIN { printf \"{\\\"fantasia\\\": {\\\"step\\\": $epoch, \\\"metrics\\\": {\\\"loss\\\": %.9f}}}\\n\", ($w - 3) ^ 2 }"
done
