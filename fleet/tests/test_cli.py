"""The commands on a machine without the packages that they need."""

import pathlib
import subprocess
import sys
import unittest

FLEET = pathlib.Path(__file__).parents[1]


class MissingPackages(unittest.TestCase):
    def test_a_sentence_names_the_package(self):
        for script, package in [("report.py", "numpy"), ("compact.py", "duckdb")]:
            # None in the list of modules makes an import of it fail, as if it were not installed.
            code = f"import sys; sys.modules[{package!r}] = None; sys.path.insert(0, {str(FLEET)!r}); "
            code += f"sys.argv = [{script!r}, '/']; import runpy; runpy.run_path({str(FLEET / script)!r}, run_name='__main__')"
            out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
            said = f"fleet: the Python package {package} is not installed: pip install duckdb numpy\n"
            self.assertEqual((out.returncode, out.stderr), (1, said))


if __name__ == "__main__":
    unittest.main()
