"""What the HTML reports of the pipeline share: the style sheet, and charts as SVG text."""
