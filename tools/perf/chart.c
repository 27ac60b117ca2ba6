/* SPDX-License-Identifier: Apache-2.0 */
/* Charts: two panels, one above the other, and the legend above both. */
#include "perf/chart.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/printable.h"
#include "common/trouble.h"
#include "perf/axis.h"

#define WIDTH 880
#define MARGIN 24
#define LEFT 84
#define RIGHT (WIDTH - MARGIN)
#define PANEL 290 /* from one panel to the next */
#define PLOT 220  /* of it the plot itself */
#define LEGEND_TOP 58
#define LEGEND_LINE 20
#define LEGEND_COLUMN ((WIDTH - 2 * MARGIN) / 2)
#define LABEL_SHOWN 54 /* characters that fit into a column */

/* Told apart also by those who see few colours, and then by their shapes. */
static const char *const colours[] = { "#0072b2", "#d55e00", "#009e73", "#cc79a7",
				       "#e69f00", "#56b4e9", "#555555", "#8a6d00" };

static const char *colour_of(size_t number)
{
	return colours[number % (sizeof(colours) / sizeof(colours[0]))];
}

/* What a panel shows of a row; negative if the row has it not. */
typedef double (*value_fn)(const struct series_row *row);

static double bandwidth_of(const struct series_row *row)
{
	return row->has_bandwidth ? row->bandwidth.bytes_per_second : -1;
}

static double median_of(const struct series_row *row)
{
	return row->has_latency ? (double)row->latency.median_ns / 1000 : -1;
}

static double p99_of(const struct series_row *row)
{
	return row->has_latency ? (double)row->latency.p99_ns / 1000 : -1;
}

static double size_of(const struct series_row *row)
{
	return row->size;
}

struct range {
	double least, most;
	bool any;
};

static void widen(struct range *range, double value)
{
	if (!(value > 0))
		return;
	range->least = range->any && range->least < value ? range->least : value;
	range->most = range->any && range->most > value ? range->most : value;
	range->any = true;
}

static struct range range_of(const struct series *series, size_t count, value_fn value)
{
	struct range range = { .any = false };

	for (size_t s = 0; s < count; s++)
		for (size_t i = 0; i < series[s].count; i++)
			widen(&range, value(&series[s].row[i]));
	return range;
}

/* ---- Texts ---- */

/* At most so many characters, made harmless for terminals and for XML. */
static void put_escaped(FILE *out, const char *text, size_t most)
{
	char clean[512];
	uint32_t code;
	size_t len;

	printable(clean, sizeof(clean), text);
	for (const char *at = clean; *at; at += len) {
		len = printable_character(at, &code);
		len = len ? len : 1;
		if (most-- <= 1 && at[len]) {
			fputs("…", out);
			return;
		}
		if (*at == '<')
			fputs("&lt;", out);
		else if (*at == '&')
			fputs("&amp;", out);
		else
			fwrite(at, 1, len, out);
	}
}

static void put_text(FILE *out, double x, double y, const char *style, const char *text)
{
	fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, style);
	put_escaped(out, text, 120);
	fputs("</text>\n", out);
}

/* One unit for all ticks of an axis, by its largest. */
static double unit_of(double most, const char **name)
{
	static const char *const names[] = { "B/s", "kB/s", "MB/s", "GB/s", "TB/s" };
	double unit = 1;
	size_t i = 0;

	for (; most / unit >= 1000 && i < 4; i++)
		unit *= 1000;
	*name = names[i];
	return unit;
}

/* ---- Panels ---- */

struct panel {
	FILE *out;
	struct axis x, y;
	double unit; /* that y's values are shown in */
};

static void put_line(FILE *out, const char *class, double x1, double y1, double x2, double y2)
{
	fprintf(out, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n",
		class, x1, y1, x2, y2);
}

static void draw_frame(const struct panel *p)
{
	char text[32];

	for (size_t i = 0; i < p->y.count; i++) {
		double y = axis_place(&p->y, p->y.tick[i]);

		put_line(p->out, "grid", LEFT, y, RIGHT, y);
		snprintf(text, sizeof(text), "%.*g", p->y.tick[i] / p->unit < 1e9 ? 9 : 4,
			 p->y.tick[i] / p->unit);
		put_text(p->out, LEFT - 8, y + 4, "class=\"tick\" text-anchor=\"end\"", text);
	}
	for (size_t i = 0; i < p->x.count; i++) {
		double x = axis_place(&p->x, p->x.tick[i]);

		put_line(p->out, "grid", x, p->y.to, x, p->y.from);
		put_text(p->out, x, p->y.from + 18, "class=\"tick\" text-anchor=\"middle\"",
			 sizes_text(text, (uint32_t)p->x.tick[i]));
	}
	put_line(p->out, "axis", LEFT, p->y.from, RIGHT, p->y.from);
}

static void draw_marker(FILE *out, size_t number, double x, double y)
{
	const char *colour = colour_of(number);

	if (number % 3 == 0)
		fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.2\" fill=\"%s\"/>\n", x, y,
			colour);
	else if (number % 3 == 1)
		fprintf(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"6\" height=\"6\" fill=\"%s\"/>\n",
			x - 3, y - 3, colour);
	else
		fprintf(out, "<path d=\"M%.1f %.1fl4 7h-8z\" fill=\"%s\"/>\n", x, y - 4.5, colour);
}

static void draw_series(const struct panel *p, const struct series *series, size_t number,
			value_fn value, bool faint)
{
	fprintf(p->out, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"%s\"%s points=\"",
		colour_of(number), faint ? "1" : "2", faint ? " stroke-dasharray=\"4 3\"" : "");
	for (size_t i = 0; i < series->count; i++)
		if (value(&series->row[i]) > 0)
			fprintf(p->out, "%.1f,%.1f ", axis_place(&p->x, series->row[i].size),
				axis_place(&p->y, value(&series->row[i])));
	fputs("\"/>\n", p->out);
	for (size_t i = 0; !faint && i < series->count; i++)
		if (value(&series->row[i]) > 0)
			draw_marker(p->out, number, axis_place(&p->x, series->row[i].size),
				    axis_place(&p->y, value(&series->row[i])));
}

static void draw_legend(FILE *out, const struct series *series, size_t count)
{
	for (size_t s = 0; s < count; s++) {
		double x = MARGIN + (s % 2 ? LEGEND_COLUMN : 0);
		size_t line = s / 2;
		double y = LEGEND_TOP + LEGEND_LINE * (double)line;

		fprintf(out,
			"<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" "
			"stroke-width=\"2\"/>\n",
			x, y, x + 26, y, colour_of(s));
		draw_marker(out, s, x + 13, y);
		fprintf(out, "<text x=\"%.1f\" y=\"%.1f\">", x + 34, y + 4);
		put_escaped(out, series[s].label, count > 1 ? LABEL_SHOWN : 2 * LABEL_SHOWN);
		fputs("</text>\n", out);
	}
}

static void place_panel(struct panel *p, double top, const char *name)
{
	p->y.from = top + PLOT;
	p->y.to = top;
	put_text(p->out, LEFT, top - 12, "class=\"name\"", name);
	draw_frame(p);
}

static void draw_bandwidth(struct panel *p, double top, const struct series *series, size_t count)
{
	struct range range = range_of(series, count, bandwidth_of);
	const char *unit;
	char name[64];

	p->unit = unit_of(range.most, &unit);
	axis_linear(&p->y, range.most);
	snprintf(name, sizeof(name), "Bandwidth, %s", unit);
	place_panel(p, top, name);
	for (size_t s = 0; s < count; s++)
		draw_series(p, &series[s], s, bandwidth_of, false);
}

static void draw_latency(struct panel *p, double top, const struct series *series, size_t count)
{
	struct range range = range_of(series, count, median_of);

	p->unit = 1;
	widen(&range, range_of(series, count, p99_of).most);
	axis_log10(&p->y, range.least, range.most);
	place_panel(p, top, "Latency, µs: median, and p99 dashed");
	for (size_t s = 0; s < count; s++) {
		draw_series(p, &series[s], s, p99_of, true);
		draw_series(p, &series[s], s, median_of, false);
	}
}

/* ---- The whole ---- */

static const char style[] =
	"<style>\n"
	"text { font-family: system-ui, 'DejaVu Sans', 'Liberation Sans', sans-serif; "
	"font-size: 12px; fill: #222222 }\n"
	".title { font-size: 17px; font-weight: 600 }\n"
	".name { font-size: 13px; font-weight: 600 }\n"
	".tick { font-size: 11px; fill: #555555 }\n"
	".grid { stroke: #e4e4e4; stroke-width: 1 }\n"
	".axis { stroke: #888888; stroke-width: 1 }\n"
	"</style>\n";

static void begin(FILE *out, double height, const char *title)
{
	fprintf(out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %.0f\" width=\"%d\" "
		"height=\"%.0f\" role=\"img\">\n<title>",
		WIDTH, height, WIDTH, height);
	put_escaped(out, title, 120);
	fprintf(out, "</title>\n%s<rect width=\"%d\" height=\"%.0f\" fill=\"#ffffff\"/>\n", style,
		WIDTH, height);
	put_text(out, MARGIN, 30, "class=\"title\"", title);
}

void chart_write(FILE *out, const char *title, const struct series *series, size_t count)
{
	bool bandwidth = range_of(series, count, bandwidth_of).any;
	bool latency = range_of(series, count, median_of).any;
	size_t lines = (count + 1) / 2;
	double top = LEGEND_TOP + LEGEND_LINE * (double)lines + 28;
	double height = top + PANEL * (bandwidth + latency) - 12;
	struct range sizes = range_of(series, count, size_of);
	struct panel panel = { .out = out };

	axis_log2(&panel.x, sizes.least, sizes.most);
	panel.x.from = LEFT + 16;
	panel.x.to = RIGHT - 16;
	begin(out, height, title);
	draw_legend(out, series, count);
	if (bandwidth)
		draw_bandwidth(&panel, top, series, count);
	if (latency)
		draw_latency(&panel, top + (bandwidth ? PANEL : 0), series, count);
	put_text(out, (LEFT + RIGHT) / 2.0, height - 12, "class=\"tick\" text-anchor=\"middle\"",
		 "message size, bytes");
	fputs("</svg>\n", out);
}

int chart_save(const char *path, const char *title, const struct series *series, size_t count,
	       struct vb_error *err)
{
	FILE *out = fopen(path, "we");
	int cause = 0;

	if (!out)
		return trouble_errno(err, VB_ERR_IO, errno, "write", path);
	errno = 0;
	chart_write(out, title, series, count);
	if (ferror(out))
		cause = errno ? errno : EIO;
	if (fclose(out) != 0 && !cause)
		cause = errno;
	if (!cause)
		return 0;
	unlink(path);
	return trouble_errno(err, VB_ERR_IO, cause, "write", path);
}
