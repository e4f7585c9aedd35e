import os
import tempfile
import unittest
from xml.etree import ElementTree

from fantasia_bench import publish, score, svg
from tests.test_score import REFERENCE, line


class SvgTest(unittest.TestCase):
    def test_ticks(self):
        self.assertEqual(svg.ticks(60, 100), [60, 65, 70, 75, 80, 85, 90, 95, 100])
        self.assertEqual(svg.ticks(0, 100), [0, 20, 40, 60, 80, 100])
        self.assertEqual(svg.ticks(-3, 4), [-3, -2, -1, 0, 1, 2, 3, 4])

    def test_a_panel_maps_its_corners(self):
        panel = svg.Panel(svg.Drawing(100, 100, ""), (10, 20, 90, 80), (0, 128), (50, 100))
        for point, place in (((0, 50), (10, 80)), ((128, 100), (90, 20)), ((64, 75), (50, 50))):
            self.assertEqual(panel.at(*point), place)

    def test_words_are_escaped(self):
        drawing = svg.Drawing(10, 10, "a < b")
        drawing.text(0, 0, "<&>")
        self.assertEqual([e.text for e in ElementTree.fromstring(str(drawing)) if e.text and not e.tag.endswith("style")], ["a < b", "<&>"])

    def test_every_colour_is_one_for_light_and_for_dark_pages(self):
        drawing = svg.Drawing(10, 10, "")
        for colour in ("ink", "grid", *svg.COLOURS):
            drawing.text(0, 0, "t", colour=colour)
            drawing.line([(0, 0)], colour)
            drawing.area([(0, 0)], colour, 0.1)
            drawing.dot(0, 0, colour, hollow=True)
        root = ElementTree.fromstring(str(drawing))
        light, dark = next(e.text for e in root if e.tag.endswith("style")).split("@media (prefers-color-scheme:dark)")
        used = {name for e in root.iter() for name in e.get("class", "").split()}
        self.assertEqual(len(used), 2 * (2 + len(svg.COLOURS)) + 1)  # and the paper, which has no line
        for name in used:
            self.assertIn(f".{name}{{", light)
            self.assertIn(f".{name}{{", dark)
        self.assertNotIn("#", str(drawing).split("</style>")[1])


class PublishTest(unittest.TestCase):
    def setUp(self):
        own = line([8, 4], "fantasia:hebo", fresh={"2": [3, 0, 3]}, program="p")
        without = line([8, 6], 'fantasia:hebo{"warp":false}', fresh={"2": [4.5, 0, 3]}, program="p")
        elsewhere = line([8, 1], "fantasia:hebo", fresh={"2": [1, 0, 3]}, program="p", seed=1)  # where the variant has not played
        self.compared, self.without = publish.comparisons(REFERENCE + [own, without, elsewhere], score.Scale.of(REFERENCE), False)

    def test_sections(self):
        made = publish.sections(self.compared, self.without, [2])
        self.assertEqual(sorted(made), ["ablation", "asking-batch", "differences-batch", "models-batch", "scores-batch"])
        # Fresh, from 2 to 5: 3 scores 66.7 and 4.5 scores 16.7. Seen, from 1 to 5: 4 scores 25, and 6 none.
        self.assertIn("| no input warping | -50.0 (-50.0 to -50.0) | -25.0 (-25.0 to -25.0) | 1 |", made["ablation"])
        self.assertNotIn("warp", made["scores-batch"])

    def test_pictures_are_xml(self):
        made = publish.pictures(self.compared, self.without, [2])
        self.assertEqual(sorted(made), ["ablation.svg", "differences-batch.svg", "scores-batch.svg"])
        for drawn in made.values():
            ElementTree.fromstring(drawn)

    def test_sections_find_their_places(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "d.md")
            with open(path, "w") as file:
                file.write("1\n<!-- compare a -->\nold\n<!-- end -->\n2\n<!-- compare b -->\n<!-- end -->\n")
            for _ in range(2):  # the second time changes nothing
                self.assertEqual(publish.into([path], {"a": r"| \1 |", "b": "B", "c": "C"}), ["c"])
                with open(path) as file:
                    self.assertEqual(file.read(), "1\n<!-- compare a -->\n\n| \\1 |\n\n<!-- end -->\n2\n<!-- compare b -->\n\nB\n\n<!-- end -->\n")


if __name__ == "__main__":
    unittest.main()
