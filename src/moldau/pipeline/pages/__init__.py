"""What the HTML reports of the pipeline share: the style sheet, the parts of a page, and charts as SVG text."""
