-- Datetimes are UTC since 0.3. What 0.2 would write again has other forms, and what it stored is kept beside the file: so the file has
-- a version of its own, which 0.2 refuses, and whether its datetimes are rewritten is asked anew.
DELETE FROM _platform_meta WHERE name = 'datetimes';
