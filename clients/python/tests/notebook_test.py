"""examples/python/train.ipynb runs cell by cell, with and without pandas and matplotlib."""
import contextlib
import io
import json
import os
import unittest.mock

import support

NOTEBOOK = support.ROOT / "examples" / "python" / "train.ipynb"


class Notebooks(support.ClusterTest):
    def run_cells(self, modules):
        """What the cells print, and their names."""
        names, out = {}, io.StringIO()
        with unittest.mock.patch.dict("sys.modules", modules), contextlib.redirect_stdout(out):
            for number, cell in enumerate(json.loads(NOTEBOOK.read_text())["cells"]):
                if cell["cell_type"] == "code":
                    exec(compile("".join(cell["source"]), f"cell {number}", "exec"), names)
        return out.getvalue(), names

    def setUp(self):
        super().setUp()
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        patch = unittest.mock.patch.dict(os.environ, {"STAGECOACH_ADDRESS": self.coordinator})
        patch.start()
        self.addCleanup(patch.stop)

    def test_without_libraries_it_prints_table_and_curve(self):
        out, names = self.run_cells({"pandas": None, "matplotlib": None, "matplotlib.pyplot": None})
        self.assertEqual(len(names["rows"]), 40)
        self.assertLess(names["losses"][-1], names["losses"][0])
        for pattern in (r"step 40: held-out loss \d", r"(?m)^   31  loss \d\.\d{4}  \d", r"(?m)^    1  \d\.\d{4} #{30,60}$",
                        r"stage-1 +backward +\d", r"sha256:[0-9a-f]{64}\n$"):
            self.assertRegex(out, pattern)

    def test_with_libraries_it_uses_them(self):
        pandas, pyplot = unittest.mock.MagicMock(), unittest.mock.MagicMock()
        _, names = self.run_cells({"pandas": pandas, "matplotlib": unittest.mock.MagicMock(pyplot=pyplot),
                                   "matplotlib.pyplot": pyplot})
        pandas.DataFrame.assert_called_once_with(names["rows"])
        pyplot.plot.assert_called_once_with(list(range(1, 41)), names["losses"], label="training")

    def test_no_output_is_committed(self):
        for cell in json.loads(NOTEBOOK.read_text())["cells"]:
            self.assertEqual((cell.get("outputs", []), cell.get("execution_count")), ([], None))


if __name__ == "__main__":
    support.main()
