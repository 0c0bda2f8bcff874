# How Sphinx makes the site of the pages.
# Read by sphinx-build, called by docs/site/build from a folder that holds README, pages and the Doxygen output.
import os
import re

from pygments.lexers import PostgresLexer

project = "pg_idempotency"
copyright = "the pg_idempotency authors"
html_title = project
html_theme = "furo"
html_show_copyright = False
html_show_sphinx = False
html_copy_source = False
html_static_path = ["site.css"]
html_css_files = ["site.css"]

root_doc = "index"
include_patterns = ["index.md", "CONTRIBUTING.md", "docs/**.md", "reference/**.md", "tests/README.md"]
exclude_patterns = ["docs/site/**"]
extensions = ["myst_parser", "breathe"]
myst_heading_anchors = 3
smartquotes = False  # a double hyphen stays one
highlight_language = "none"

breathe_projects = {"cpp": os.environ["DOXYGEN_OUTPUT"] + "/xml"}
breathe_default_project = "cpp"
breathe_domain_by_extension = {"hpp": "cpp", "h": "c"}


# Links that lead to the sources: one to a public header leads to its page here, one to a folder is of no use in the site and becomes text.
def source_links(app, page, source):
    folder = os.path.join(app.srcdir, os.path.dirname(page))

    def replaced(match):
        target = os.path.normpath(os.path.join(folder, match[2]))
        header = "cpp" if target.endswith("client/include/idempotency") else os.path.splitext(os.path.basename(target))[0]
        reference = os.path.join(app.srcdir, "reference", header + ".md")
        if re.search(r"client/(include|adapters|core)/", target) and os.path.exists(reference):
            return f"[{match[1]}]({os.path.relpath(reference, folder)})"
        return f"`{match[1].strip('`')}`" if os.path.isdir(target) else match[0]

    source[0] = re.sub(r"(?<!!)\[([^\]\n]+)\]\(([^)#:\s]+)\)", replaced, source[0])


def setup(app):
    app.add_lexer("sql", PostgresLexer)
    app.connect("source-read", source_links)
