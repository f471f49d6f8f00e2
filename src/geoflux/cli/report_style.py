"""The look of the report: one style sheet, light and dark, screen and paper."""

from __future__ import annotations

_LIGHT = """
--page:#f6f7f9; --card:#fff; --ink:#1b2430; --muted:#5d6b7c; --line:#e2e6ec; --map:#f2f5f9;
--accent:#2f6fde; --accent2:#7aa5ee; --warm:#d9772b; --leaf:#2f9e7c; --plum:#8a63c9;
--stone:#b4bdc9; --good:#1f8a5b; --bad:#c8372d; --good-soft:#e5f4ec; --bad-soft:#fbe9e7;
color-scheme:light;"""

_DARK = """
--page:#0f141b; --card:#171e27; --ink:#e4e9f0; --muted:#93a1b3; --line:#2a3441; --map:#121922;
--accent:#6b9df5; --accent2:#3f66a8; --warm:#eb9a55; --leaf:#4fbf9a; --plum:#ac8be0;
--stone:#566273; --good:#56c596; --bad:#f08a80; --good-soft:#16322a; --bad-soft:#3b1f1d;
color-scheme:dark;"""

LIGHT = dict(entry.strip()[2:].split(":", 1) for entry in _LIGHT.split(";") if "--" in entry)
"""The light colours by name, for pictures outside the page."""

STYLE = (
    ":root{--sans:system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;"
    + _LIGHT
    + "}\n@media screen and (prefers-color-scheme:dark){:root{"
    + _DARK
    + """}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:15px/1.5 var(--sans);
  font-variant-numeric:tabular-nums}
main{max-width:1160px;margin:0 auto;padding:36px 24px 48px}
header{margin-bottom:24px}
.kind{color:var(--muted);font-size:13px;letter-spacing:.02em}
h1{font-size:25px;line-height:1.28;font-weight:650;letter-spacing:-.012em;margin:4px 0 10px;
  overflow-wrap:anywhere}
.about{color:var(--muted);font-size:14px;margin:0}
.verdict{display:inline-block;padding:1px 10px;border-radius:99px;font-size:13px;font-weight:600;
  margin-right:8px;background:var(--good-soft);color:var(--good)}
.verdict.bad{background:var(--bad-soft);color:var(--bad)}
.verdict.none{background:var(--line);color:var(--muted)}
.card,.tiles{background:var(--card);border:1px solid var(--line);border-radius:10px}
.tiles{display:grid;grid-template-columns:repeat(6,1fr);margin:0 0 16px;overflow:hidden}
.tiles div{padding:14px 16px 13px;box-shadow:1px 1px 0 var(--line)}
.tiles dt{color:var(--muted);font-size:12.5px}
.tiles dd{margin:0}
.tiles .value{font-size:23px;font-weight:620;letter-spacing:-.015em;line-height:1.3;
  white-space:nowrap}
.tiles .value small{font-size:14px;font-weight:500;color:var(--muted);margin-left:3px}
.tiles .note{color:var(--muted);font-size:12.5px;line-height:1.4}
.grid{display:grid;grid-template-columns:repeat(2,minmax(0,1fr));gap:16px;align-items:stretch}
.wide{grid-column:1/-1}
.card{padding:16px 18px 14px;min-width:0}
h2{font-size:15px;font-weight:640;margin:0;letter-spacing:-.003em}
h3{font-size:13px;font-weight:600;margin:10px 0 2px;color:var(--muted)}
.caption{color:var(--muted);font-size:13px;line-height:1.45;margin:2px 0 8px}
.key{display:flex;flex-wrap:wrap;gap:2px 16px;font-size:12.5px;color:var(--muted);
  margin:0 0 6px;padding:0;list-style:none}
.key i{display:inline-block;width:10px;height:10px;border-radius:2.5px;margin-right:6px}
.key i.stroke{height:0;border-top:2px dashed var(--muted);border-radius:0;width:16px;
  vertical-align:middle}
.key i.tick{width:0;height:9px;border-left:1.5px solid var(--warm);border-radius:0}
.key b{color:var(--ink);font-weight:600}
svg{display:block;width:100%;height:auto;overflow:visible}
.map svg{max-width:var(--width);margin:0 auto}
.map svg text{paint-order:stroke;stroke:var(--card);stroke-width:2.5px;stroke-opacity:.75;
  stroke-linejoin:round}
.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(440px,100%),1fr));gap:4px 16px}
.strip{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(300px,100%),1fr));gap:6px 16px}
.pair .caption,.strip .caption{font-size:12.5px;margin:0 0 6px}
.strip>div{display:flex;flex-direction:column}
.strip svg{margin-top:auto}
.scroll{overflow-x:auto}
.scroll table{min-width:620px}
.scroll th{white-space:nowrap}
.scroll td:nth-last-child(2){min-width:150px}
details summary{cursor:pointer}
details[open] summary{margin-bottom:4px}
details.rest>summary{color:var(--muted);font-size:13px;margin-top:8px}
table{border-collapse:collapse;width:100%;font-size:13.5px;margin-top:6px}
th{text-align:left;color:var(--muted);font-weight:500;font-size:12.5px}
th,td{padding:5px 12px 5px 0;border-bottom:1px solid var(--line);vertical-align:top;
  overflow-wrap:anywhere}
tr:last-child td{border-bottom:0}
tr.total td{font-weight:620}
td.number,th.number{text-align:right;white-space:nowrap;padding-right:0;padding-left:12px}
td.tight{white-space:nowrap}
code{font:12.5px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
.none{color:var(--muted)}
p.none{font-size:13.5px;margin:6px 0 0}
footer{color:var(--muted);font-size:12.5px;margin-top:20px}
@media(max-width:1000px){.tiles{grid-template-columns:repeat(3,1fr)}}
@media(max-width:820px){.grid{grid-template-columns:minmax(0,1fr)}main{padding:20px 14px 32px}
  .tiles{grid-template-columns:repeat(2,1fr)}h1{font-size:21px}}
@media print{@page{margin:12mm}body{background:none;font-size:12px;
  -webkit-print-color-adjust:exact;print-color-adjust:exact}main{padding:0;max-width:none}
  .card,.tiles{break-inside:avoid}.grid{grid-template-columns:repeat(2,minmax(0,1fr))}
  .tiles{grid-template-columns:repeat(3,1fr)}.tiles .value{font-size:18px}}
"""
)
