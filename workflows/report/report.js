'use strict';
// Builds the page from the run's results, which are JSON in the element "run".
// Texts of the run only become text nodes and attributes, never HTML.
(() => {
  const root = document.documentElement;
  window.addEventListener('error', () => { root.dataset.error = 'true'; });
  const page = JSON.parse(document.getElementById('run').textContent);
  const run = page.results;

  // --- Elements -------------------------------------------------------------
  function el(tag, attributes, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
    }
    element.append(...children.flat().filter((child) => child !== null && child !== undefined));
    return element;
  }
  // Returns a number as people read it; its attribute has all digits.
  function num(value, text) {
    return value === null ? '–' : el('data', {value: String(value), title: String(value)}, text(value));
  }
  const badge = (kind, text) => el('span', {class: 'badge ' + kind}, text);

  // --- Numbers as text ------------------------------------------------------
  const minus = (text) => text.replace('-', '−');
  const fixed = (decimals) => (value) => minus(value.toFixed(decimals));
  const signed = (decimals) => (value) => (value > 0 ? '+' : '') + minus(value.toFixed(decimals));
  const count = (value) => value.toLocaleString('en-US');
  const digits = (n) => (value) => {
    if (value === 0) return '0';
    const size = Math.abs(value);
    return minus(size >= 1e-5 && size < 1e6 ? String(Number(value.toPrecision(n))) : value.toExponential(n - 1));
  };
  const significant = digits(3);
  // Uses enough decimals not to show a smaller share as 100 %.
  function percent(least) {
    return (share) => {
      let decimals = least;
      while (share < 1 && 1 - share <= .005 * Math.pow(.1, decimals) && decimals < 12) ++decimals;
      return minus((100 * share).toFixed(decimals)) + '\u00a0%';
    };
  }
  function bytes(value) {
    for (const [unit, size] of [['GB', 1e9], ['MB', 1e6], ['kB', 1e3]]) {
      if (value >= size) return (value / size).toPrecision(3) + '\u00a0' + unit;
    }
    return value + ' B';
  }
  function seconds(value) {
    if (value < 60) return value.toFixed(value < 10 ? 2 : 1) + '\u00a0s';
    const whole = Math.round(value);
    const clock = [Math.floor(whole / 60) % 60, whole % 60].map((n) => String(n).padStart(2, '0'));
    return whole < 3600 ? Number(clock[0]) + ' min ' + clock[1] + '\u00a0s' : Math.floor(whole / 3600) + ' h ' + clock[0] + ' min';
  }
  const rate = (value) => count(Number(value.toPrecision(4))) + '/s';
  const times = (value) => value.toFixed(2) + '×';
  const decibels = (value) => value.toFixed(1) + ' dB';
  const range = (ends, text) => text(ends[0]) + ' to ' + text(ends[1]);
  const noun = (n, one, many) => count(n) + ' ' + (n === 1 ? one : many || one + 's');

  // --- What the run is about ------------------------------------------------
  const VERDICTS = {pass: ['good', 'pass'], inconclusive: ['doubt', 'not certain'], fail: ['bad', 'fail']};
  const STATES = {
    done: ['good', 'done'], cached: ['plain', 'cached'], given: ['plain', 'given'], left_out: ['plain', 'left out'],
    failed: ['bad', 'failed'], interrupted: ['doubt', 'interrupted'], running: ['doubt', 'running'], not_run: ['plain', 'not run'],
  };
  const verdictBadge = (verdict) => verdict ? badge(...VERDICTS[verdict]) : '–';
  const stageNamed = (name) => run.stages.find((stage) => stage.name === name);
  const finalStage = run.final ? stageNamed(run.final.stage) : null;
  const tasksOf = (stage) => [
    ['make', stage.work], ['verify', stage.verification && stage.verification.work],
    ['benchmark', stage.benchmark && stage.benchmark.work],
  ].filter(([, task]) => task);
  const gates = run.stages.flatMap((stage) =>
    (stage.verification ? stage.verification.gates : []).map((gate) => ({stage, gate})));
  const quote = (name) => '“' + name + '”';

  // Returns the first stage in one of these states, or with this verdict.
  const firstIn = (...states) => run.stages.find((stage) => states.includes(stage.figures.state));
  const firstJudged = (verdict) => run.stages.find((stage) => stage.figures.verdict === verdict);

  function headline() {
    const verified = run.stages.filter((stage) => stage.figures.verdict).length;
    const judged = gates.filter(({gate}) => gate.verdict);
    switch (run.outcome) {
      case 'passed':
        return ['good', '✓', 'Passed', !verified ? 'Every stage succeeded.'
          : !judged.some(({gate}) => gate.name !== 'lost_values') ? 'No output was lost. No limit was set on how much the model may change.'
          : `All gates ${judged.length < gates.length ? 'that could be judged ' : ''}held on ${noun(verified, 'verified stage')}.`];
      case 'inconclusive':
        return ['doubt', '?', 'Not certain', 'No gate failed, but the records were too few to be sure of all of them; with --strict, such a run fails.'];
      case 'gate_failed': {
        const stage = firstJudged('fail') || firstJudged('inconclusive');
        const failed = gates.filter(({gate}) => gate.verdict === 'fail');
        const missed = failed.length && failed.every(({gate}) => gate.name === 'expect');
        return ['bad', '✕', stage ? `Stopped at ${quote(stage.name)}` : 'Stopped by a gate',
          (missed ? 'The accuracy of this stage is not the one that is expected of the model' :
            'The graph of this stage is not as good as its limits ask for') + '; nothing that depends on it ran.'];
      }
      case 'failed': {
        const stage = firstIn('failed');
        return ['bad', '✕', stage ? `Failed at ${quote(stage.name)}` : 'Failed', 'A stage did not finish; its message is below.'];
      }
      case 'interrupted': {
        const stage = firstIn('interrupted');
        return ['doubt', '!', stage ? `Interrupted at ${quote(stage.name)}` : 'Interrupted',
          'What is done is kept; the same command goes on from there, without --force and --from.'];
      }
      default:
        return ['doubt', '…', 'Not finished', 'The run has no outcome yet.'];
    }
  }

  // --- Charts ---------------------------------------------------------------
  // Every chart is made anew when the colors change.
  const plots = [];
  const color = (name) => getComputedStyle(root).getPropertyValue('--' + name).trim();
  const seriesColor = (i) => color('series-' + (i % 8 + 1));

  function plot(title, note, table, config, height) {
    const canvas = el('canvas', {role: 'img', 'aria-label': `${title}: a chart; ${table} has the same numbers.`});
    const area = el('div', {class: 'plot'}, canvas);
    if (height) area.style.height = height + 'px';
    plots.push({canvas, config, chart: null});
    return el('figure', {}, el('figcaption', {}, title, note ? el('span', {class: 'quiet'}, note) : null), area);
  }

  // Draws a dashed line across the chart at options.plugins.limit.value.
  const limitLine = {
    id: 'limit',
    afterDatasetsDraw(chart, _, {value, label}) {
      const scale = chart.scales.y;
      if (value === undefined || value < scale.min || value > scale.max) return;
      const {ctx, chartArea: {left, right}} = chart;
      const y = scale.getPixelForValue(value);
      ctx.save();
      ctx.strokeStyle = ctx.fillStyle = color('bad');
      ctx.lineWidth = 1.5;
      ctx.setLineDash([6, 4]);
      ctx.beginPath();
      ctx.moveTo(left, y);
      ctx.lineTo(right, y);
      ctx.stroke();
      ctx.font = `12px ${Chart.defaults.font.family}`;
      ctx.textAlign = 'right';
      ctx.fillText(label, right - 4, y + (y < chart.chartArea.top + 18 ? 14 : -5));
      ctx.restore();
    },
  };

  function draw() {
    Chart.defaults.color = color('quiet');
    Chart.defaults.borderColor = color('grid');
    Chart.defaults.animation = false;
    Chart.defaults.maintainAspectRatio = false;
    Object.assign(Chart.defaults.plugins.legend.labels, {usePointStyle: true, pointStyle: 'rectRounded', boxWidth: 10, boxHeight: 10, padding: 14});
    Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
    for (const entry of plots) {
      if (entry.chart) entry.chart.destroy();
      entry.chart = new Chart(entry.canvas, {...entry.config(), plugins: [limitLine]});
    }
  }

  const shorten = (text, length) => text.length <= length ? text : text.slice(0, length - 1) + '…';
  function valueAxis(title, text, more) {
    // Ticks that are close together may have the same text, which is shown once.
    const callback = (value, i, ticks) => i > 0 && text(ticks[i - 1].value) === text(value) ? '' : text(value);
    return {title: {display: true, text: title}, ticks: {callback, maxTicksLimit: 7}, ...more};
  }
  const nameAxis = () => ({
    grid: {display: false}, offset: true,
    ticks: {autoSkip: false, maxRotation: 60, callback(value) { return shorten(this.getLabelForValue(value), 16); }},
  });

  // Draws points and their 95 % intervals, for the stages that have both.
  function intervalPlot(title, note, key, factor, text, {span, limit, least, most}) {
    const interval = key.replace(/_points$/, '') + '_interval_95';
    const stages = run.stages.filter((stage) => stage.figures[key] !== null);
    if (!stages.length) return null;
    const values = stages.map((stage) => factor * stage.figures[key]);
    const ends = stages.map((stage) => stage.figures[interval] ? stage.figures[interval].map((end) => factor * end) : null);
    const all = [...values, ...ends.filter(Boolean).flat()];
    const low = Math.min(...all), high = Math.max(...all);
    const extent = Math.max(high - low, span);
    // A limit that is far away would flatten the data.
    const near = limit !== undefined && limit >= low - 3 * extent && limit <= high + 3 * extent;
    const room = near ? Math.max(high, limit) - Math.min(low, limit) : extent;
    const clamp = (end) => Math.max(least === undefined ? -Infinity : least, Math.min(most === undefined ? Infinity : most, end));
    const caption = limit === undefined || near ? note : `${note} The limit, ${text(limit)}, is outside of the picture.`;
    const config = () => ({
      data: {
        labels: stages.map((stage) => stage.name),
        datasets: [
          {type: 'line', label: title, data: values, showLine: false, clip: 8, pointRadius: 5, pointHoverRadius: 7,
            pointBackgroundColor: stages.map((stage) => color({fail: 'bad', inconclusive: 'doubt'}[stage.figures.verdict] || 'series-1')), pointBorderColor: color('card'), pointBorderWidth: 1.5},
          {type: 'bar', label: '95 % interval', data: ends, barThickness: 12, borderRadius: 6, borderSkipped: false,
            backgroundColor: color('band')},
        ],
      },
      options: {
        scales: {
          x: nameAxis(),
          y: valueAxis('', text, {
            beginAtZero: false,
            suggestedMin: clamp(Math.min(low, near ? limit : low) - .12 * room),
            suggestedMax: clamp(Math.max(high, near ? limit : high) + .12 * room),
          }),
        },
        plugins: {
          legend: {display: false}, limit: near ? {value: limit, label: `limit ${text(limit)}`} : {},
          tooltip: {callbacks: {label: (item) => item.datasetIndex === 0 ? text(item.raw) : `95 %: ${range(item.raw, text)}`}},
        },
      },
    });
    return plot(title, caption, 'the table of stages', config);
  }

  function barPlot(title, note, stages, series, axisTitle, text) {
    if (!stages.length) return null;
    const config = () => ({
      type: 'bar',
      data: {
        labels: stages.map((stage) => stage.name),
        datasets: series.map(({label, value, color: name}) => ({
          label, data: stages.map(value), backgroundColor: color(name), borderRadius: 4, maxBarThickness: 34,
        })),
      },
      options: {
        scales: {x: nameAxis(), y: valueAxis(axisTitle, text, {beginAtZero: true})},
        plugins: {
          legend: {display: series.length > 1},
          tooltip: {callbacks: {label: (item) => `${item.dataset.label}: ${text(item.raw)}`}},
        },
      },
    });
    return plot(title, note, 'the table of stages', config);
  }

  // --- Tables ---------------------------------------------------------------
  let tables = 0;
  // `columns` are [heading, class]; the first cell of a row is its heading.
  function table(caption, columns, rows, options = {}) {
    const id = 'table-' + (++tables);
    const head = el('tr', {}, columns.map(([name, kind]) => el('th', {scope: 'col', class: kind}, name)));
    const body = rows.map(({cells, ...attributes}) => el('tr', attributes, cells.map((cell, i) => {
      const kind = columns[i][1];
      if (i === 0) return el('th', {scope: 'row', title: cell.textContent || cell}, cell);
      const {content, ...more} = cell !== null && typeof cell === 'object' && !(cell instanceof Node) ? cell : {content: cell};
      return el('td', {class: kind, ...more}, content === null ? '–' : content);
    })));
    return el('div', {class: 'scroll' + (options.tall ? ' tall' : ''), tabindex: 0, role: 'region', 'aria-labelledby': id},
      el('table', {id: options.id}, el('caption', {id}, caption), el('thead', {}, head), el('tbody', {}, body)));
  }

  const figure = (key, ...content) => ({content: content.filter(Boolean), 'data-figure': key});
  const sub = (text) => el('span', {class: 'sub'}, text);
  const subRange = (ends, text) => ends ? sub(range(ends, text)) : null;

  // Shows a message, if there is one, when people point at it.
  function stateBadge(stage) {
    const [kind, word] = STATES[stage.figures.state];
    const message = tasksOf(stage).map(([, task]) => task.message).find(Boolean);
    return el('span', {class: 'badge ' + kind, title: message}, word);
  }

  const judgesSquares = gates.some(({gate}) => ['max_mse', 'relative_mse'].includes(gate.name));
  // Heading, class and content of the columns. Leaves out columns for which no
  // stage has a figure, and squared errors that no gate judges.
  const STAGE_COLUMNS = [
    ['Stage', 'left', null, (f, stage) => el('span', {}, stage.name, sub(stage.summary || stage.kind))],
    ['Verdict', 'left', 'verdict', (f) => [verdictBadge(f.verdict)]],
    ['State', 'left', 'state', (f, stage) => [stateBadge(stage), stage.left_out_because ? sub('by ' + stage.left_out_because) : null]],
    ['Time', '', 'seconds', (f) => [['not_run', 'left_out'].includes(f.state) ? '–' : num(f.seconds, seconds),
      f.state === 'cached' && f.work_seconds > 0 ? sub('took ' + seconds(f.work_seconds)) : null]],
    ['Accuracy', '', 'accuracy', (f) => [num(f.accuracy, percent(3))]],
    ['Difference', '', 'difference_points', (f) => [num(f.difference_points, signed(3)), subRange(f.difference_interval_95, signed(3))]],
    ['RMSE', '', 'rmse', (f) => [num(f.rmse, significant)]],
    ['Agreement', '', 'agreement', (f) => [num(f.agreement, percent(2))]],
    ['Output change', '', 'mean_output_change', (f) => [num(f.mean_output_change, significant),
      f.max_output_change ? sub('max ' + significant(f.max_output_change)) : null]],
    ['Squared error', '', 'mse', (f) => [num(f.mse, significant), subRange(f.mse_interval_95, significant)]],
    ['Records', '', 'records_per_second', (f) => [num(f.records_per_second, rate)]],
    ['Nodes', '', 'nodes', (f) => [num(f.nodes, count)]],
    ['Size', '', 'bytes', (f) => [num(f.bytes, bytes)]],
  ];

  function stagesSection() {
    const columns = STAGE_COLUMNS.filter(([, , key]) =>
      !key || (run.stages.some((stage) => stage.figures[key] !== null) && (key !== 'mse' || judgesSquares)));
    const rows = run.stages.map((stage) => ({
      'data-stage': stage.name,
      cells: columns.map(([, , key, content]) => key ? figure(key, ...content(stage.figures, stage)) : content(stage.figures, stage)),
    }));
    return section('stages', 'Stages', 'Stages', 'In the order of the workflow file. Differences are paired, in percentage points, against the stage’s baseline, with their 95 % intervals below.',
      table('Every stage, with what its verification found', columns, rows, {id: 'stage-table'}));
  }

  // --- Sections -------------------------------------------------------------
  const sections = [];
  function section(id, word, title, intro, ...content) {
    const kept = content.flat().filter(Boolean);
    if (!kept.length) return null;
    sections.push([id, word]);
    return el('section', {class: 'card long', id, 'aria-labelledby': id + '-title'},
      el('h2', {id: id + '-title'}, title), intro ? el('p', {class: 'quiet small'}, intro) : null, kept);
  }

  function tile(label, value, more) {
    return el('div', {class: 'tile'}, el('div', {class: 'label'}, label), el('div', {class: 'value'}, value),
      el('div', {class: 'more'}, more));
  }

  const isSlower = (speed) => (speed.interval_95 ? speed.interval_95[1] : speed.ratio) < 1;
  const change = (before, now, text) => before === null ? [num(now, text)]
    : [el('small', {}, num(before, text), ' → '), num(now, text)];

  function accuracyTile(f) {
    const value = change(run.final.baseline_accuracy, f.accuracy, percent(2));
    const more = f.difference_points === null ? '' : el('span', {}, num(f.difference_points, signed(3)), ' points',
      f.difference_interval_95 ? ` (${range(f.difference_interval_95, signed(3))})` : '');
    return tile('Accuracy', value, more);
  }

  function tiles() {
    if (!finalStage) return null;
    const f = finalStage.figures, s = run.final;
    const list = [];
    if (f.accuracy !== null) list.push(accuracyTile(f));
    if (f.rmse !== null) list.push(tile('RMSE', change(s.baseline_rmse, f.rmse, significant), 'against the labels'));
    if (f.agreement !== null) {
      list.push(tile('Same prediction', num(f.agreement, percent(2)), 'of records, as by the baseline'));
    }
    if (f.mean_output_change !== null) {
      list.push(tile('Mean output change', num(f.mean_output_change, significant), 'largest ' + significant(f.max_output_change)));
    }
    if (s.speed) {
      list.push(tile('Speed', num(s.speed.ratio, times), (isSlower(s.speed) ? 'slower; ' : '') +
        (s.speed.interval_95 ? `95 %: ${range(s.speed.interval_95, times)}` : s.speed_is_benchmarked ? 'benchmarked' : 'while verifying; not benchmarked')));
    }
    if (s.size_ratio !== null) {
      list.push(tile('Size', num(s.size_ratio, (ratio) => '1/' + ratio.toFixed(2)),
        `${bytes(s.baseline_bytes)} → ${bytes(f.bytes)}`));
    }
    return el('div', {class: 'tiles', id: 'summary'}, list);
  }

  // Returns the line under the verdict, for those who read only one.
  function summaryLine() {
    if (!finalStage) return null;
    const f = finalStage.figures, s = run.final, parts = [];
    if (f.accuracy !== null && s.baseline_accuracy !== null) {
      parts.push(`accuracy ${percent(3)(s.baseline_accuracy)} → ${percent(3)(f.accuracy)}`);
    }
    if (f.rmse !== null && s.baseline_rmse !== null) parts.push(`RMSE ${significant(s.baseline_rmse)} → ${significant(f.rmse)}`);
    if (f.difference_interval_95) parts.push(`difference ${range(f.difference_interval_95, signed(3))} points`);
    if (f.agreement !== null) parts.push(`agreement ${percent(2)(f.agreement)}`);
    if (f.mean_output_change !== null) parts.push(`mean output change ${significant(f.mean_output_change)}`);
    if (s.speed) parts.push(`speed ${times(s.speed.ratio)}` + (isSlower(s.speed) ? ' (slower)' : ''));
    if (s.size_ratio !== null) parts.push(`size 1/${s.size_ratio.toFixed(2)}`);
    return el('p', {class: 'small'}, `${quote(s.stage)} against ${quote(s.baseline || '')}: ${parts.join(', ')}.`);
  }

  function problems() {
    const items = [];
    for (const {stage, gate} of gates) {
      if (gate.verdict === 'pass') continue;
      const [kind, word] = VERDICTS[gate.verdict] || ['doubt', 'not judged'];
      items.push(el('li', {class: kind}, badge(kind, word), ' ', el('b', {}, stage.name), ': ', gate.sentence,
        gate.layer ? ` (layer ${gate.layer})` : '', gate.advice ? el('p', {class: 'quiet'}, 'What to try: ' + gate.advice) : null));
    }
    for (const stage of run.stages) {
      for (const [, task] of tasksOf(stage)) {
        if (task.message && ['failed', 'interrupted'].includes(task.state)) {
          const [kind, word] = STATES[task.state];
          items.push(el('li', {class: kind}, badge(kind, word), ' ', el('b', {}, stage.name), ': ', task.message));
        }
        for (const warning of task.warnings) {
          items.push(el('li', {class: 'doubt'}, badge('doubt', 'warning'), ' ', el('b', {}, stage.name), ': ', warning));
        }
      }
    }
    for (const baseline of run.baselines) {
      for (const text of [baseline.work.message, ...baseline.work.warnings].filter(Boolean)) {
        items.push(el('li', {class: 'doubt'}, badge('doubt', STATES[baseline.work.state][1]), ' ', el('b', {}, baseline.name), ': ', text));
      }
    }
    return items.length ? el('ul', {class: 'problems'}, items) : null;
  }

  function header() {
    const [kind, mark, title, sentence] = headline();
    return el('header', {class: 'top'},
      el('div', {class: 'brand'}, el('b', {}, 'Requant'), el('span', {}, run.workflow), el('span', {}, 'run ' + run.run),
        el('span', {}, run.started.replace('T', ' ').replace(/\.\d+Z$/, ' UTC')), el('span', {}, num(run.seconds, seconds))),
      el('div', {class: 'verdict ' + kind, id: 'verdict', 'data-outcome': run.outcome},
        el('div', {class: 'mark', 'aria-hidden': 'true'}, el('span', {}, mark)),
        el('div', {}, el('h1', {}, title), el('p', {}, sentence), summaryLine())),
      problems(), tiles());
  }

  // Returns the limit of the last stage that has such a gate.
  function limitOf(name) {
    const last = gates.filter(({gate}) => gate.name === name).pop();
    return last ? last.gate.limit : undefined;
  }

  function qualitySection() {
    const drop = limitOf('max_accuracy_drop'), agreement = limitOf('min_agreement');
    const charts = [
      intervalPlot('Accuracy', 'Of each stage alone, with its 95 % interval.', 'accuracy', 100,
        (v) => minus(v.toFixed(2)) + '\u00a0%', {span: .1, least: 0, most: 100}),
      intervalPlot('Accuracy against the baseline', 'Paired difference in points, with its 95 % interval.', 'difference_points', 1,
        signed(3), {span: .02, limit: drop === undefined ? undefined : -drop}),
      intervalPlot('Agreement', 'Records with the same prediction as the baseline’s.', 'agreement', 100,
        (v) => minus(v.toFixed(2)) + '\u00a0%', {span: .1, limit: agreement === undefined ? undefined : 100 * agreement, least: 0, most: 100}),
      intervalPlot('Mean output change', 'Against the baseline.', 'mean_output_change', 1, significant,
        {span: .001, limit: limitOf('max_mean_output_change'), least: 0}),
    ].filter(Boolean);
    return section('quality', 'Accuracy', 'Accuracy, stage by stage', 'Each point is a verified graph; the band behind it is the 95 % interval.',
      charts.length ? el('div', {class: 'grid'}, charts) : null);
  }

  function benchmarkTable(stage) {
    return table(`Benchmark ${quote(stage.name)}: rounds side by side, against the first graph`, [
      ['Graph', 'left'], ['Records'], ['Spread'], ['Batch, median'], ['Batch, 99 %'], ['CPU per record'], ['Speed'], ['CPU time'],
    ], stage.benchmark.graphs.map((graph) => ({cells: [
      graph.stage, num(graph.records_per_second, rate), num(graph.spread, percent(1)),
      num(graph.milliseconds_per_batch, (v) => v.toFixed(2) + ' ms'), num(graph.milliseconds_per_batch_p99, (v) => v.toFixed(2) + ' ms'),
      num(graph.cpu_microseconds_per_record, (v) => v.toFixed(2) + ' µs'),
      {content: [num(graph.speed.ratio, times), subRange(graph.speed.interval_95, times)]},
      {content: [num(graph.cpu_time.ratio, times), subRange(graph.cpu_time.interval_95, times)]},
    ]})));
  }

  function speedSection() {
    const measured = run.stages.filter((stage) => stage.figures.benchmark_speed);
    const fed = run.stages.filter((stage) => stage.figures.records_per_second !== null);
    const sized = run.stages.filter((stage) => stage.figures.bytes !== null);
    const charts = [
      measured.length
        ? barPlot('Speed, benchmarked', 'Records per second, graphs alternating round by round.', measured,
          [{label: 'records per second', value: (stage) => stage.figures.benchmark_records_per_second, color: 'series-4'}], '', count)
        : null,
      barPlot('Speed while verifying', 'Records per second of the session, with whatever else ran then.', fed,
        [{label: 'records per second', value: (stage) => stage.figures.records_per_second, color: 'series-1'}], '', count),
      barPlot('Size of the graph’s file', null, sized,
        [{label: 'size', value: (stage) => stage.figures.bytes, color: 'series-3'}], '', bytes),
      barPlot('Nodes', null, sized, [{label: 'nodes', value: (stage) => stage.figures.nodes, color: 'series-2'}], '', count),
    ].filter(Boolean);
    return section('speed', 'Speed and size', 'Speed and size', null, charts.length ? el('div', {class: 'grid'}, charts) : null,
      run.stages.filter((stage) => stage.benchmark && stage.benchmark.graphs.length)
        .map((stage) => el('div', {class: 'space'}, benchmarkTable(stage))));
  }

  // --- Layers ---------------------------------------------------------------
  const layered = run.stages.filter((stage) => stage.verification && stage.verification.layers.length);
  const snr = (layer) => layer.signal_to_noise_db === null ? Infinity : layer.signal_to_noise_db;
  const worstFirst = (stage) => [...stage.verification.layers].sort((a, b) => snr(a) - snr(b) || (a.name < b.name ? -1 : 1));
  const SHOWN_LAYERS = 24;

  // The folders that all layers' names share, which are not shown.
  const prefix = (() => {
    const names = layered.flatMap((stage) => stage.verification.layers.map((layer) => layer.name));
    if (new Set(names).size < 2) return '';
    let shared = names[0];
    for (const name of names) while (!name.startsWith(shared)) shared = shared.slice(0, -1);
    return shared.slice(0, shared.lastIndexOf('/') + 1);
  })();
  const layerLabel = (name) => shorten(name.slice(prefix.length), 30);

  function horizontal(labels, datasets, axis, tooltip, legend) {
    return {
      type: 'bar', data: {labels, datasets},
      options: {
        indexAxis: 'y',
        scales: {x: axis, y: {grid: {display: false}, ticks: {autoSkip: false}}},
        plugins: {legend: {display: legend, position: 'bottom'}, tooltip: {callbacks: {label: tooltip}}},
      },
    };
  }

  function snrPlot(layers) {
    return plot('Signal to noise', 'The layer’s output against its float reference; longer is better.', 'the table of layers', () => horizontal(
      layers.map((layer) => layerLabel(layer.name)),
      [{label: 'signal to noise', data: layers.map((layer) => layer.signal_to_noise_db), maxBarThickness: 18, borderRadius: 4,
        backgroundColor: layers.map((layer) => color(layer.quantized ? 'series-1' : 'muted-bar'))}],
      valueAxis('decibels', fixed(0), {beginAtZero: true}), (item) => decibels(item.raw), false), 90 + 30 * layers.length);
  }

  function rangePlot(layers) {
    return plot('Ranges', 'What the float layer’s values are, and what the eight-bit codes can hold.', 'the table of layers', () => horizontal(
      layers.map((layer) => layerLabel(layer.name)),
      [{label: 'observed', data: layers.map((layer) => layer.observed), backgroundColor: color('muted-bar'), borderRadius: 3, borderSkipped: false, maxBarThickness: 10},
        {label: 'calibrated', data: layers.map((layer) => layer.range), backgroundColor: color('series-2'), borderRadius: 3, borderSkipped: false, maxBarThickness: 10}],
      valueAxis('value', significant),
      (item) => `${item.dataset.label}: ${range(item.raw, significant)}` +
        (item.datasetIndex ? `, ${percent(3)(layers[item.dataIndex].clipped_share)} clipped` : ''), true), 90 + 30 * layers.length);
  }

  function layerTable(stage, layers) {
    return table(`Layers of ${quote(stage.name)}, worst first, on ${count(layers[0].records)} records` + (prefix ? `; names start with ${prefix}` : ''), [
      ['Layer', 'left'], ['Signal to noise'], ['Error, steps'], ['Largest error'], ['Observed'], ['Calibrated'], ['Clipped'],
      ['Records clipped'], ['Gain'], ['Worst channel, steps'],
    ], layers.map((layer) => ({
      'data-layer': layer.name,
      cells: [
        el('span', {title: layer.name}, layer.name.slice(prefix.length), sub(layer.quantized ? 'eight bits' : 'float')),
        {content: layer.signal_to_noise_db === null ? (layer.rms_error === 0 ? 'exact' : '–') : num(layer.signal_to_noise_db, decibels), 'data-figure': 'signal_to_noise_db'},
        layer.step > 0 ? num(layer.rms_error / layer.step, fixed(2)) : null,
        num(layer.max_error, significant),
        range(layer.observed, significant), layer.range ? range(layer.range, significant) : null,
        figure('clipped_share', num(layer.clipped_share, percent(3))),
        figure('clipped_records', num(layer.clipped_records, percent(3))),
        figure('gain', num(layer.gain, fixed(4))),
        layer.step > 0 ? {content: [num(layer.worst_channel_shift / layer.step, signed(2)), sub('channel ' + count(layer.worst_channel))]} : null,
      ],
    })), {tall: layers.length > 12});
  }

  // Draws a line per layer over the stages: where each one lost accuracy.
  function lossPlot() {
    if (layered.length < 2) return null;
    const names = worstFirst(layered[layered.length - 1]).slice(0, 8).map((layer) => layer.name);
    return plot('Where layers lose', 'Signal to noise of each layer, stage by stage' + (names.length === 8 ? ' (the eight worst).' : '.'), 'the table of layers', () => ({
      type: 'line',
      data: {
        labels: layered.map((stage) => stage.name),
        datasets: names.map((name, i) => ({
          label: layerLabel(name), borderColor: seriesColor(i), backgroundColor: seriesColor(i), borderWidth: 2, tension: .2, spanGaps: true,
          data: layered.map((stage) => (stage.verification.layers.find((layer) => layer.name === name) || {signal_to_noise_db: null}).signal_to_noise_db),
        })),
      },
      options: {
        scales: {x: nameAxis(), y: valueAxis('decibels', fixed(1), {grace: '10%'})},
        plugins: {legend: {position: 'bottom'}, tooltip: {callbacks: {label: (item) => `${item.dataset.label}: ${decibels(item.raw)}`}}},
      },
    }), 300);
  }

  function layersSection() {
    if (!layered.length) return null;
    const content = el('div', {});
    const loss = lossPlot();
    const first = plots.length;
    function show(stage) {
      for (const {chart} of plots.splice(first)) if (chart) chart.destroy();
      const layers = worstFirst(stage), shown = layers.slice(0, SHOWN_LAYERS);
      const unmatched = stage.verification.unmatched_layers;
      content.replaceChildren(
        el('div', {class: 'grid'}, snrPlot(shown), rangePlot(shown)),
        layers.length > shown.length ? el('p', {class: 'quiet small'}, `The charts have the ${SHOWN_LAYERS} worst of ${layers.length} layers.`) : '',
        el('div', {class: 'space'}, layerTable(stage, layers)),
        unmatched.length ? el('p', {class: 'small space'}, 'Without a counterpart: ' + unmatched.join(', ')) : '');
    }
    const quantized = layered.filter((stage) => stage.verification.layers.some((layer) => layer.quantized));
    const chosen = quantized.length ? quantized[quantized.length - 1] : layered[layered.length - 1];
    const select = el('select', {id: 'layer-stage'}, layered.map((stage, i) =>
      el('option', {value: i, selected: stage === chosen ? '' : null}, stage.name)));
    select.addEventListener('change', () => {
      show(layered[Number(select.value)]);
      draw();
    });
    show(chosen);
    return section('layers', 'Layers', 'Which layer lost what', 'Every layer of the float baseline against the same layer here.',
      el('div', {class: 'controls'}, el('label', {for: 'layer-stage'}, 'Stage'), select), content,
      loss ? el('div', {class: 'space'}, loss) : null);
  }

  // --- Time -----------------------------------------------------------------
  function timeSection() {
    const tasks = [
      ...run.baselines.map((baseline) => ({name: baseline.name, kind: 'baseline', task: baseline.work})),
      ...run.stages.flatMap((stage) => tasksOf(stage).map(([kind, task]) =>
        ({name: stage.name + (kind === 'verify' ? '/verify' : ''), kind, task}))),
    ].filter(({task}) => task.state !== 'not_run' && task.state !== 'given');
    if (!tasks.length) return null;
    tasks.sort((a, b) => a.task.start - b.task.start);
    const kinds = [['make', 'makes', 'series-1'], ['verify', 'verifies', 'series-4'], ['benchmark', 'benchmarks', 'series-2'],
      ['baseline', 'runs a baseline', 'series-3'], ['cached', 'from the cache', 'muted-bar']];
    const kindOf = ({kind, task}) => task.state === 'cached' ? 'cached' : kind;
    // A task that took no time would be invisible.
    const end = Math.max(run.seconds, .01, ...tasks.map(({task}) => task.start + task.seconds));
    const least = end / 300;
    const bar = ({task}) => [task.start, task.start + Math.max(task.seconds, least)];
    const config = () => {
      const present = kinds.filter(([kind]) => tasks.some((task) => kindOf(task) === kind));
      const made = horizontal(tasks.map(({name}) => shorten(name, 26)), present.map(([kind, label, name]) => ({
        label, grouped: false, backgroundColor: color(name), borderRadius: 3, borderSkipped: false, maxBarThickness: 15,
        data: tasks.map((task) => kindOf(task) === kind ? bar(task) : null),
      })), valueAxis('seconds since the start', significant, {min: 0, max: end}),
      (item) => `${item.dataset.label}: ${seconds(tasks[item.dataIndex].task.seconds)}`, true);
      made.options.scales.y.ticks.font = {size: 11};
      return made;
    };
    const busy = tasks.reduce((sum, {task}) => sum + task.seconds, 0);
    return section('time', 'Time line', 'Time line', `${noun(tasks.length, 'task')}: ${seconds(busy)} of work in ${seconds(run.seconds)}.`,
      plot('When each task ran', null, 'the table below', config, 110 + 21 * tasks.length),
      el('details', {class: 'space'}, el('summary', {}, 'As a table'), table('Tasks in the order of time', [
        ['Task', 'left'], ['State', 'left'], ['Start'], ['Time'], ['When it was done'],
      ], tasks.map(({name, task}) => ({cells: [name, {content: badge(...STATES[task.state])}, num(task.start, seconds), num(task.seconds, seconds),
        num(task.work_seconds, seconds)]})))));
  }

  // --- Operations -----------------------------------------------------------
  // Returns the stage that made the graph that this one reads, if there is one.
  function before(stage) {
    const inputs = stage.work ? stage.work.inputs : [];
    const graph = inputs.find((file) => file.role === 'graph' && file.stage) || inputs.find((file) => file.stage);
    const source = graph && stageNamed(graph.stage);
    return source && source.graph ? source : null;
  }

  function opRows(old, now) {
    return [...new Set([...Object.keys(old), ...Object.keys(now)])].sort().map((op) => {
      const a = old[op] || 0, b = now[op] || 0;
      return {op, a, b, difference: b - a};
    });
  }

  function opsSection() {
    const blocks = run.stages.filter((stage) => stage.graph && Object.keys(stage.graph.ops).length).map((stage) => {
      const source = before(stage);
      const rows = opRows(source ? source.graph.ops : {}, stage.graph.ops);
      const changed = rows.filter((row) => row.difference !== 0).length;
      const title = source ? `${noun(source.graph.nodes, 'node')} → ${count(stage.graph.nodes)}, ${noun(changed, 'type')} changed`
        : noun(stage.graph.nodes, 'node');
      const columns = source ? [['Operation', 'left'], ['Before'], ['After'], ['Difference']] : [['Operation', 'left'], ['Nodes']];
      const caption = source ? `${quote(stage.name)} against ${quote(source.name)}` : `Operations of ${quote(stage.name)}`;
      return el('details', {}, el('summary', {}, el('b', {}, stage.name), ' ', el('span', {class: 'quiet'}, title)),
        table(caption, columns, rows.map(({op, a, b, difference}) => ({cells: source
          ? [op, num(a, count), num(b, count), difference ? el('span', {class: difference > 0 ? 'more-less' : 'fewer'}, num(difference, signed(0))) : '']
          : [op, num(b, count)]})), {tall: rows.length > 14}));
    });
    return section('operations', 'Operations', 'Operations before and after', 'How many nodes of each type a stage found, and how many it left.', blocks);
  }

  // --- Gates ----------------------------------------------------------------
  function gatesSection() {
    if (!gates.length) return null;
    const text = digits(4);
    return section('gates', 'Gates', 'Gates', 'A gate passes when the whole 95 % interval is inside its limit, fails when all of it is beyond, and is not certain otherwise.',
      table('Every limit that was judged', [
        ['Stage', 'left'], ['Gate', 'left'], ['Verdict', 'left'], ['Found'], ['95 % interval'], ['Limit'], ['In words', 'wrap'],
      ], gates.map(({stage, gate}) => ({
        'data-gate': stage.name + '/' + gate.name,
        cells: [stage.name, {content: [gate.name, gate.layer ? sub(gate.layer) : null].filter(Boolean)}, verdictBadge(gate.verdict),
          figure('value', num(gate.value, text)), gate.interval_95 ? range(gate.interval_95, text) : null, num(gate.limit, text),
          {content: [gate.sentence, gate.advice ? sub(gate.advice) : null].filter(Boolean)}],
      })), {tall: gates.length > 12}));
  }

  // --- To do it again -------------------------------------------------------
  function copyable(text, label) {
    const pre = el('pre', {tabindex: 0, 'aria-label': label}, text);
    const button = el('button', {type: 'button'}, 'Copy');
    button.addEventListener('click', async () => {
      try {
        await navigator.clipboard.writeText(text);
      } catch (_) {
        getSelection().selectAllChildren(pre);
        document.execCommand('copy');
      }
      button.textContent = 'Copied';
    });
    return el('div', {class: 'code'}, pre, button);
  }

  // Lists every task after those whose files it reads.
  function tasksInOrder() {
    const waiting = [
      ...run.baselines.map((baseline) => ({name: baseline.name, stage: baseline.name, task: baseline.work})),
      ...run.stages.flatMap((stage) => tasksOf(stage).map(([kind, task]) =>
        ({name: stage.name + (kind === 'verify' ? '/verify' : ''), stage: stage.name, task}))),
    ];
    const order = [];
    while (waiting.length) {
      const makers = new Set(waiting.map(({stage}) => stage));
      const ready = waiting.findIndex(({stage, task}) =>
        task.inputs.every((file) => file.stage === stage || !makers.has(file.stage)));
      order.push(...waiting.splice(Math.max(ready, 0), 1));
    }
    return order;
  }

  function reproduceSection() {
    const lines = tasksInOrder().filter(({task}) => task.commands.length).flatMap(({name, task}) =>
      [`# ${name.replace(/[\r\n]+/g, ' ')}`, ...task.commands, '']);
    return section('reproduce', 'Commands', 'To do it again', 'The whole run is one command:',
      copyable(run.command, 'The command of the run'),
      lines.length ? el('p', {class: 'quiet small space'}, 'Stage by stage, for a shell in the run’s folder, it is:') : null,
      lines.length ? copyable(lines.join('\n').trimEnd() + '\n', 'The commands of every stage') : null);
  }

  function notesSection() {
    const blocks = tasksInOrder().filter(({task}) => task.notes.length).map(({name, task}) =>
      el('details', {}, el('summary', {}, el('b', {}, name), ' ', el('span', {class: 'quiet'}, noun(task.notes.length, 'line'))),
        el('div', {class: 'inset'}, el('pre', {tabindex: 0, 'aria-label': 'Notes of ' + name}, task.notes.join('\n')))));
    return section('notes', 'Notes', 'What the stages said', null, blocks);
  }

  function environmentSection() {
    const tool = run.tool;
    const facts = [['Requant', tool.version], ['TensorFlow', tool.tensorflow], ['CPU', tool.cpu], ['Cores', tool.cores ? String(tool.cores) : ''],
      ['CPU features', tool.cpu_features.join(', ')], ['Target “host”', tool.target], ['System', tool.system], ['Workflow file', run.file],
      ['About', run.summary]].filter(([, value]) => value);
    return section('environment', 'Environment', 'Where and with what', null,
      el('dl', {class: 'facts'}, facts.flatMap(([name, value]) => [el('dt', {}, name), el('dd', {}, value)])),
      run.variables.length ? table('Variables of the workflow', [['Name', 'left'], ['Value', 'left'], ['From', 'left']],
        run.variables.map(({name, value, from}) => ({cells: [name, value, from]}))) : null,
      page.workflow_text ? el('details', {class: 'space'}, el('summary', {}, 'The workflow file'),
        el('div', {class: 'inset'}, copyable(page.workflow_text, 'The workflow file'))) : null);
  }

  // --- All together ---------------------------------------------------------
  const top = header();
  const content = [stagesSection(), qualitySection(), layersSection(), speedSection(), timeSection(), opsSection(), gatesSection(),
    notesSection(), reproduceSection(), environmentSection()].filter(Boolean);
  top.append(el('nav', {'aria-label': 'Sections'}, sections.map(([id, title]) => el('a', {href: '#' + id}, title))));
  document.body.append(top, el('main', {}, content), el('footer', {}, el('p', {},
    'The same numbers are in results.json and results.csv beside this file; manifest.json has the digests of all files. Charts by Chart.js.')));
  draw();

  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
  window.addEventListener('beforeprint', () => {
    root.dataset.print = '';
    for (const details of document.querySelectorAll('details')) details.open = true;
    draw();
  });
  window.addEventListener('afterprint', () => {
    delete root.dataset.print;
    draw();
  });
  root.dataset.charts = plots.filter(({chart}) => chart).length;
  root.dataset.overflow = root.scrollWidth > root.clientWidth;
  root.dataset.ready = 'true';
})();
