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
include_patterns = ["index.md", "CONTRIBUTING.md", "docs/**.md", "reference/**.md"]
exclude_patterns = ["docs/site/**"]
extensions = ["myst_parser", "breathe"]
myst_heading_anchors = 3
smartquotes = False  # a double hyphen stays one
highlight_language = "none"

breathe_projects = {"cpp": os.environ["DOXYGEN_OUTPUT"] + "/xml"}
breathe_default_project = "cpp"
breathe_domain_by_extension = {"hpp": "cpp", "h": "c"}


# A link to a folder of the sources is of no use in the site: its text stays.
def folder_links_as_text(app, page, source):
    folder = os.path.join(app.srcdir, os.path.dirname(page))

    def replaced(match):
        is_folder = os.path.isdir(os.path.join(folder, match[2]))
        return f"`{match[1].strip('`')}`" if is_folder else match[0]

    source[0] = re.sub(r"(?<!!)\[([^\]\n]+)\]\(([^)#:\s]+)\)", replaced, source[0])


def setup(app):
    app.add_lexer("sql", PostgresLexer)
    app.connect("source-read", folder_links_as_text)
