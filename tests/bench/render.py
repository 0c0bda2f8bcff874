"""Writes the tables of docs/benchmarks/README.md and the plots from the results.
Called by tests/bench/run.
"""
import pathlib
import re
import subprocess

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/benchmarks/README.md"


def short(number):
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"


def with_spread(value, form=short):
    median, low, high = (form(value[part]) for part in ("median", "p25", "p75"))
    return median if low == high else f"{median} ({low} to {high})"


def ratio(record):
    return with_spread(record["ratio"], "{:.2f}".format) if "ratio" in record else "none"


def both(record):
    """The median with its spread, and the ratio to the first row."""
    return with_spread(record) + (f"; {record['ratio']['median']:.2f}" if "ratio" in record else "")


def table(corner, records, row, columns, cell):
    """Rows and columns in the order in which they come. Columns are a function of a record, as row and cell are."""
    cells = {(row(one), columns(one)): cell(one) for one in records}
    rows, heads = (list(dict.fromkeys(key[i] for key in cells)) for i in (0, 1))
    lines = [[corner, *heads], ["---"] * (len(heads) + 1), *([name, *(cells.get((name, head), "") for head in heads)] for name in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def variant(record):
    return record["variant"]


def setting(record):
    return f"{record['commit']}, {record['delay_ms']:g} ms"


def connections(record):
    return f"{record['connections']} connection" + ("s" if record["connections"] > 1 else "")


def of(records, metric, **wanted):
    return [one for one in records if one["metric"] == metric and all(one[name] == value for name, value in wanted.items())]


def throughput(record):
    return f"{with_spread(record)} a second" if record["variant"] == "plain" else ratio(record)


def costs(records):
    """What a request costs, by metric, where there is no delay; round trips where there is one."""
    names = ["server CPU a request, microseconds", "WAL a request, bytes", "table and indexes a key, bytes", "dead row versions a key", "transaction ids a request"]
    fewest = [one for one in records if one["delay_ms"] == 0]
    some = [one for name in names for one in of(fewest, name, connections=fewest[-1]["connections"], commit=fewest[-1]["commit"])]
    trips = {one["variant"]: one for one in of(records, "round trips a request")}
    title = f"\nCosts with {connections(fewest[-1])}, {setting(fewest[-1])}: median (quartiles); ratio to plain.\n\n"
    return title + table("", some + list(trips.values()), variant, lambda one: one["metric"], both)


def keyed_write(records):
    text = ""
    for name in dict.fromkeys(map(setting, records)):
        some = [one for one in of(records, "requests per second") if setting(one) == name]
        text += f"\nThroughput, {name}: requests, and ratios to plain.\n\n" + table("", some, variant, connections, throughput)
    text += "\nLatency with one connection: median in microseconds; ratio to plain.\n\n"
    return text + table("", of(records, "median latency, microseconds", connections=1), variant, setting, both) + costs(records)


def replay(records):
    return ("\nThroughput of replays: ratios to a plain write.\n\n"
            + table("", of(records, "requests per second"), variant, lambda one: f"{connections(one)}, {one['delay_ms']:g} ms", throughput) + costs(records))


def metrics(records):
    return "\n" + table("", records, lambda one: f"{one['variant']}, {one['keys']:,} keys" if "keys" in one else variant(one), lambda one: one["metric"], both)


def identical_requests(records):
    shown = ("milliseconds until all are answered", "median latency, microseconds", "effects", "replays", "transaction ids a request")
    return metrics([one for one in records if one["metric"] in shown])


def canonical_json(records):
    return ("\n" + table("microseconds", of(records, "microseconds"), variant, lambda one: one["body"], both)
            + "\n" + table("hostile input", [one for one in records if one["metric"] != "microseconds"], lambda one: one["body"], lambda one: one["metric"], with_spread))


TABLES = {"keyed_write": keyed_write, "replay": replay, "identical_requests": identical_requests, "canonical_json": canonical_json, "cleanup": metrics}


def plot(records, count, file):
    """A cluster of bars for each setting, a bar for each way of doing it, with the quartiles; plain is the line at 1."""
    some = [one for one in of(records, "requests per second", connections=count) if one["variant"] != "plain"]
    variants, settings = (list(dict.fromkeys(map(key, some))) for key in (variant, setting))
    value = {(variant(one), setting(one)): one["ratio"] for one in some}
    data = "\n".join(f'"{name}" ' + " ".join(f"{value[way, name][part]:.4f}" for way in variants for part in ("median", "p25", "p75")) for name in settings)
    bars = ", ".join(f'$data using {3 * i + 2}:{3 * i + 3}:{3 * i + 4}:xtic(1) title "{way}"' for i, way in enumerate(variants))
    # Grey reads on white and on black; there is no background.
    subprocess.run(["gnuplot"], check=True, text=True, input=f"""
$data << end
{data}
end
set terminal svg size 900,480 dynamic font "sans-serif,13" linewidth 1
set output "{file}"
set title "Keyed writes a second with {count} connection{'s' if count > 1 else ''}, plain write = 1" textcolor "#808080"
set border 3 linecolor "#808080"
set tics nomirror textcolor "#808080"
set key outside below horizontal textcolor "#808080"
set style data histograms
set style histogram errorbars gap 1.5 linewidth 1
set style fill solid 0.8 border
set yrange [0:*]
set arrow from graph 0, first 1 to graph 1, first 1 nohead linecolor "#808080" dashtype 2
plot {bars}
""")


def render(results, folder):
    """@param results: by benchmark, as in results.json. @param folder: gets README.md and the plots."""
    page = PAGE.read_text()
    for name, result in results.items():
        runs = sorted({one["runs"] for one in result["records"]})
        heading = (f"{result['date']}, version {result['version']}, {result['postgresql']}, {result['cpus']} CPUs ({result['cpu']}), "
                   f"Linux {result['kernel']}, {result['compiler']}; runs: {' or '.join(map(str, runs))}.\n")
        text = heading + TABLES[name](result["records"])
        page = re.sub(rf"(<!-- {name} -->\n).*?(<!-- end -->)", lambda found, text=text: found[1] + text + found[2], page, flags=re.DOTALL)
    (folder / "README.md").write_text(page)
    written = results.get("keyed_write", {}).get("records", [])
    for count in dict.fromkeys(one["connections"] for one in written):
        plot(written, count, folder / f"keyed_write_{count}.svg")
