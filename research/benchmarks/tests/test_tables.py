import io
import os
import tempfile
import unittest

from fantasia_bench import publish, tables

TEXT = """Text, and `fantasia bench --seeds 0`.

```sh table=first
fantasia bench --optimizer 'a,b{x=y}' \\
  --seeds 0-1
```

```sh run
fantasia bench --seeds 2
```

```sh table=second
make linalg
```
"""


class CommandsTest(unittest.TestCase):
    def test_of_marked_blocks(self):
        self.assertEqual(tables.commands(TEXT), {"first": "fantasia bench --optimizer 'a,b{x=y}' \\\n  --seeds 0-1", "second": "make linalg"})

    def test_of_the_pages(self):
        text = publish.published()
        found = tables.commands(text)
        self.assertEqual(len(found), text.count("```sh table="), "names are distinct, and every block has an end")
        for name, command in found.items():
            self.assertRegex(name, "^[a-z-]+$")
            self.assertRegex(command, "^(fantasia bench|go test|make) ")
            self.assertEqual(" --out " in command, False, f"{name}: the folder is given to it")


class PlayTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.join(folder.name, "tables")

    def play(self, todo, binary="echo"):
        said = io.StringIO()
        return tables.play(todo, self.folder, binary, said), said.getvalue()

    def text(self, name):
        with open(os.path.join(self.folder, name)) as file:
            return file.read()

    def test_keeps_what_they_print(self):
        self.assertEqual(self.play({"one": "fantasia bench \\\n  --seeds 0", "two": "ls go.mod"}, "/bin/echo")[0], [])
        self.assertEqual(self.text("one.txt"), f"$ fantasia bench \\\n  --seeds 0\n\nbench --seeds 0 --out {self.folder}/one\n")
        self.assertEqual(self.text("two.txt"), "$ ls go.mod\n\ngo.mod\n")

    def test_plays_what_is_lacking(self):
        count = os.path.join(self.folder, "count")
        todo = {"one": f"echo x >> {count}"}
        self.play(todo)
        self.assertIn("one.txt is there", self.play(todo)[1])
        self.assertEqual(self.text("count"), "x\n")
        self.play({"one": todo["one"] + "; echo y"})  # another command of the name
        self.assertEqual(self.text("count"), "x\nx\n")

    def test_one_that_fails_is_no_table_and_stops_no_other(self):
        self.assertEqual(self.play({"one": "echo half; false", "two": "echo whole"})[0], ["one"])
        self.assertEqual(sorted(os.listdir(self.folder)), ["one.txt.part", "two.txt"])


if __name__ == "__main__":
    unittest.main()
